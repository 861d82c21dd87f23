"""The backend `grain`: Google's Grain reads samples by index and makes batches in threads, or in processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from loaderbench.loaders.backend import Batches, Prefetch
from loaderbench.loaders.thread_workers import ThreadBatches, ThreadLoader
from loaderbench.loaders.torch_loader import MAX_WORKERS, check_samples_by_number, worker_ladder
from loaderbench.options import Check, integer
from loaderbench.ranks import MOST_RANKS, check_enough, rank_and_ranks
from loaderbench.records import Config, Scalar

BUFFERED = 1
"""Batches in the queue of each process, and in the thread that empties the queue: Grain's default."""

IN_PROCESS = 2 * BUFFERED + 2
"""Batches in flight per process beyond those of its threads.

Both queues of the process are full, and the two threads that fill them hold one more batch each.
"""

_CODE = """\
from itertools import islice
import grain
from torch.utils.data import default_collate
{collate}
samples = grain.MapDataset.source(dataset){shuffle}
epoch = samples.batch({size}, drop_remainder={drop_last}, batch_fn={batch_fn})
reading = grain.ReadOptions(num_threads={threads}, prefetch_buffer_size={queued})
batches = epoch.repeat().to_iter_dataset(reading)
"""
_PROCESSES = """\
import random
import torch

def seed(worker, workers):  # each process starts with the same seed of torch
    torch.manual_seed(worker)
    random.seed(worker)
    torch.set_num_threads(1)

processes = grain.MultiprocessingOptions(num_workers={workers})
batches = batches.mp_prefetch(processes, worker_init_fn=seed)
"""
_ARRAYS = """
from torch.utils._pytree import tree_map

def arrays(samples):  # which Grain sends through shared memory; tensors of torch do not outlive their process
    return tree_map(lambda part: part.numpy() if torch.is_tensor(part) else part, default_collate(samples))


def tensor(part):
    return torch.from_numpy(part) if hasattr(part, "dtype") else part
"""
_LOADER = """\
class Loader:
    def __init__(self):
        self.batches = iter(batches)

    def __len__(self):
        return len(epoch)

    def __iter__(self):
        return {epoch}
"""


class Grain(ThreadLoader):
    """Grain with its own order, threads and processes; samples come from the dataset's code."""

    display_name: ClassVar[str] = "Grain"
    needs: ClassVar[str] = "grain"
    install: ClassVar[str] = "uv pip install grain"
    arguments: ClassVar[Mapping[str, Check]] = {**ThreadLoader.arguments, "num_workers": integer(0, MAX_WORKERS)}
    auto: ClassVar[Mapping[str, Callable[[float], list[Scalar]]]] = {
        **ThreadLoader.auto,
        "num_workers": worker_ladder,
    }
    library_defaults: ClassVar[Config] = {**ThreadLoader.library_defaults, "num_workers": 0}
    worker_axes: ClassVar[frozenset[str]] = ThreadLoader.worker_axes | {"num_workers"}

    def loading_in(self, workers: int, arguments: Mapping[str, Any]) -> Config:
        """The thread count, or the number of processes that have this many threads together."""
        threads = super().prefetch(arguments).workers or 1
        return {"num_workers": max(1, workers // threads)} if _processes(arguments) else {"threads": workers}

    def starts_interpreters(self, arguments: Mapping[str, Any]) -> bool:
        """Grain spawns its processes."""
        return _processes(arguments) > 0

    def prefetch(self, arguments: Mapping[str, Any]) -> Prefetch:
        """Prefetch as many batches as requested; with processes, as many for each, plus those in its queues."""
        found, processes = super().prefetch(arguments), _processes(arguments)
        if not processes:
            return found
        queued = processes * (self.queued(arguments) + IN_PROCESS)
        return replace(found, workers=processes * (found.workers or 1), queued=queued, shares_memory=True)

    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        """Read a map-style dataset. Raises `TypeError` for any other source, and `ValueError` for too few samples."""
        check_samples_by_number(source, "grain")
        order = Order.of_this_rank(len(source), bool(arguments.get("shuffle", False)), seed)
        found, processes = self.prefetch(arguments), _processes(arguments)
        threads = min(super().prefetch(arguments).workers or 1, self.queued(arguments))
        pipeline = Pipeline(order, found.batch_size or 1, threads, self.queued(arguments), processes)
        made = GrainBatches(source, pipeline)
        batches = self.batches(made, arguments, order.per_epoch, cycle=found.workers or 1)
        return _OfProcesses(**vars(batches)) if processes else batches

    def code(self, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """Code of an endless pipeline; each epoch takes its part."""
        found, processes = super().prefetch(arguments), _processes(arguments)
        made = _CODE.format(
            shuffle=".shuffle(seed=0)" if arguments.get("shuffle") else "",
            size=found.batch_size,
            drop_last=bool(arguments.get("drop_last")),
            threads=found.workers,
            queued=self.queued(arguments),
            collate=_ARRAYS if processes else "",
            batch_fn="arrays" if processes else "default_collate",
        )
        in_processes = _PROCESSES.format(workers=processes) if processes else ""
        taken = "islice(self.batches, len(epoch))"
        taken = f"(tree_map(tensor, batch) for batch in {taken})" if processes else taken
        loader = _LOADER.format(epoch=taken)
        return [made + in_processes, loader, "\n".join([*comments, "loader = Loader()"])]


def _processes(arguments: Mapping[str, Any]) -> int:
    """The number of processes; a saved run can hold any value."""
    given = arguments.get("num_workers")
    return given if isinstance(given, int) and given > 0 else 0


@dataclass(frozen=True)
class _OfProcesses(ThreadBatches):
    """Batches made in processes, each with its own threads."""

    worker_pids = Batches.worker_pids
    loading_threads = Batches.loading_threads


@dataclass(frozen=True)
class Order:
    """The order of the samples of one rank: Grain's shuffle, different in each epoch. `seed` has 32 bits."""

    length: int
    seed: int | None
    rank: int = 0
    ranks: int = 1

    @classmethod
    def of_this_rank(cls, length: int, shuffle: bool, seed: int) -> Order:
        """Create the order of this rank. Raises `ValueError` for an empty dataset, or fewer samples than ranks."""
        from loaderbench.loaders.seeded import mixed

        if length == 0:
            raise ValueError("the dataset is empty")
        rank, ranks = rank_and_ranks()
        check_enough(length, "sample", ranks)
        own = mixed(seed, 0) & 0xFFFFFFFF  # Grain uses seed + 1 in the next epoch, so rounds need seeds further apart
        return cls(length, own if shuffle else None, rank, ranks)

    @property
    def per_epoch(self) -> int:
        """The number of samples of this rank in an epoch."""
        return len(range(self.rank, self.length, self.ranks))

    def of(self, samples: Any) -> Any:
        """An endless Grain dataset in this order."""
        shuffled = samples if self.seed is None else samples.shuffle(seed=self.seed)
        return shuffled.slice(slice(self.rank, None, self.ranks)).repeat()


@dataclass(frozen=True)
class Pipeline:
    """How batches are made. Each of the `processes` has `threads` threads; without processes, this process has them."""

    order: Order
    batch_size: int
    threads: int
    queued: int
    processes: int

    def of(self, source: Any) -> Any:
        """Batches of a source that is indexed by number."""
        import grain
        from torch.utils.data import default_collate

        samples = self.order.of(grain.MapDataset.source(source))
        collate = collated_arrays if self.processes else default_collate
        batches = samples.batch(self.batch_size, drop_remainder=True, batch_fn=collate)
        reading = grain.ReadOptions(num_threads=self.threads, prefetch_buffer_size=self.queued)
        found = batches.to_iter_dataset(reading)
        if not self.processes:
            return found
        options = grain.MultiprocessingOptions(num_workers=self.processes, per_worker_buffer_size=BUFFERED)
        return found.mp_prefetch(options, worker_init_fn=SetUp(self.order.seed or 0, self.order.rank))


@dataclass(frozen=True)
class SetUp:
    """The setup of each process: all start with the same torch seed, and would draw the same crops."""

    seed: int
    rank: int

    def __call__(self, worker: int, workers: int) -> None:
        """Seed this process differently from the others, and compute in one thread, as torch's workers do."""
        import torch

        from loaderbench.loaders.seeded import mixed, seed_all

        seed_all(mixed(self.seed, worker * MOST_RANKS + self.rank))
        torch.set_num_threads(1)


def collated_arrays(samples: Sequence[Any]) -> Any:
    """A batch collated as in torch, but of NumPy arrays, which Grain passes through shared memory.

    Torch tensors would have to be fetched from the process that made them, and Grain empties its queues after that
    process has ended.
    """
    from torch import Tensor
    from torch.utils.data import default_collate

    return _each_leaf(default_collate([*samples]), lambda leaf: leaf.numpy() if isinstance(leaf, Tensor) else leaf)


def tensors_of(batch: Any) -> Any:
    """Wrap the arrays as tensors in the same shared memory, unlinked early: a trial's process ends without destructors.

    Otherwise Grain unlinks the memory when the array is deleted.
    """
    import numpy as np
    from torch import from_numpy

    def tensor(leaf: Any) -> Any:
        if getattr(leaf, "_unlink_on_del", False):
            leaf._unlink_on_del = False
            leaf.shm.unlink()
        return from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf

    return _each_leaf(batch, tensor)


def _each_leaf(batch: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(batch, Mapping):
        return {name: _each_leaf(part, change) for name, part in batch.items()}
    if isinstance(batch, list | tuple):
        parts = [_each_leaf(part, change) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return change(batch)


def _delete_at_once() -> None:
    """Make Grain free shared memory immediately, not later in a thread that may never run."""
    with suppress(ImportError, AttributeError):  # a different version of Grain
        from grain._src.python.ipc.shared_memory_array import SharedMemoryArray

        SharedMemoryArray._disable_async_del()


class GrainBatches:
    """Endless batches. An exception in a sample is raised in the consumer."""

    def __init__(self, source: Any, pipeline: Pipeline) -> None:
        self._source, self._pipeline = source, pipeline
        self._watched: ThreadsWatched | None = None
        self._iterator: Any = None

    def __iter__(self) -> Iterator[Any]:
        import torch

        self.end()
        watched = None if self._pipeline.processes else ThreadsWatched(self._source, self._pipeline.threads)
        self._watched = watched
        iterator = self._iterator = iter(self._pipeline.of(watched or self._source))
        own = torch.get_num_threads()
        batch = next(iterator)
        torch.set_num_threads(own)  # threads that start later inherit the setting of a loading thread
        while True:
            yield tensors_of(batch) if self._pipeline.processes else batch
            if self._iterator is not iterator:
                return
            batch = next(iterator)

    def threads(self) -> list[int]:
        """Kernel IDs of the loading threads of this process."""
        return self._watched.numbers() if self._watched is not None else []

    def end(self) -> None:
        """End the processes, or the threads after their current batches."""
        iterator, self._iterator = self._iterator, None
        if iterator is not None:
            _delete_at_once()
            iterator.close()
        watched, self._watched = self._watched, None
        if watched is not None:
            watched.join()


class ThreadsWatched:
    """A dataset wrapper that records which Grain threads load from it, and sets torch to one thread in each.

    Grain starts all threads for its first batches. None starts its batch before all threads have started.
    """

    def __init__(self, dataset: Any, threads: int) -> None:
        self._dataset = dataset
        self._all_begun = threading.Barrier(threads)
        self._known = threading.local()
        self._threads: list[threading.Thread] = []

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> Any:
        if not hasattr(self._known, "begun"):
            self._begin()
        return self._dataset[index]

    def _begin(self) -> None:
        import torch

        torch.set_num_threads(1)
        torch.get_num_threads()  # makes the setting stick to this thread
        self._known.begun = True
        self._threads.append(threading.current_thread())
        self._all_begun.wait()

    def numbers(self) -> list[int]:
        """Kernel IDs of the running threads."""
        return sorted(thread.native_id for thread in self._threads if thread.is_alive() and thread.native_id)

    def join(self) -> None:
        """Wait until all threads have ended."""
        for thread in self._threads:
            thread.join()
