"""Shared code of loaders whose workers are threads of the training process."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from loaderbench.loaders.backend import Batches, LoaderBackend, Prefetch, TracedIn
from loaderbench.options import Check, boolean, integer
from loaderbench.ranks import has_ranks
from loaderbench.records import Config, Scalar

MAX_BATCH_SIZE, MAX_THREADS, MAX_QUEUED = 1_000_000, 1_024, 1_024


def thread_ladder(cpus_allotted: float) -> list[Scalar]:
    """Thread counts worth trying on this many CPUs: one, half, all, and twice as many."""
    cpus = max(1, math.ceil(cpus_allotted))
    return [*sorted({1, max(1, cpus // 2), cpus, 2 * cpus})]


@dataclass(frozen=True)
class ThreadBatches(Batches):
    """Batches made by threads of this process. `threads` returns the kernel IDs of the running threads.

    `end` ends the threads, and can be called twice. `loading` is the thread pool if it runs the dataset's code.
    """

    threads: Callable[[], list[int]] = list
    end: Callable[[], None] = lambda: None
    loading: LoadingThreads | None = None

    @property
    def traced_in(self) -> TracedIn:
        """Nowhere if a library loads in its own threads, which cannot be traced."""
        return "nowhere" if self.loading is None else "threads"

    @property
    def is_divided(self) -> bool:
        """True in a process group: loaders with threads always divide their samples among ranks."""
        return has_ranks()

    def worker_pids(self) -> list[int]:
        """No process: threads load."""
        return []

    def loading_threads(self) -> list[int]:
        """Kernel IDs of the running threads."""
        return self.threads()

    def close(self, iterator: Iterator[Any] | None = None) -> None:
        """End the threads."""
        super().close(iterator)
        self.end()


class MadeByThreads(Protocol):
    """An iterable of batches that owns its threads."""

    def __iter__(self) -> Iterator[Any]: ...

    def threads(self) -> list[int]:
        """Kernel IDs of the threads that currently make batches."""
        ...

    def end(self) -> None:
        """End the threads; a second call does nothing."""


class Asked(NamedTuple):
    """The values of a configuration."""

    batch_size: int
    threads: int
    queued: int
    seed: int
    shuffle: bool


class ThreadLoader(LoaderBackend):
    """A loader with the axes `threads` and `queued`, the number of batches ready or in flight."""

    arguments: ClassVar[Mapping[str, Check]] = {
        "batch_size": integer(1, MAX_BATCH_SIZE),
        "threads": integer(1, MAX_THREADS),
        "queued": integer(1, MAX_QUEUED),
        "shuffle": boolean,
        "drop_last": boolean,
    }
    auto: ClassVar[Mapping[str, Callable[[float], list[Scalar]]]] = {
        "threads": thread_ladder,
    }
    library_defaults: ClassVar[Config] = {"threads": 1}
    worker_axes: ClassVar[frozenset[str]] = frozenset(("threads", "queued"))

    def loading_in(self, workers: int, arguments: Mapping[str, Any]) -> Config:
        """The thread count, at least one."""
        return {"threads": max(1, workers)}

    def prefetch(self, arguments: Mapping[str, Any]) -> Prefetch:
        """Prefetch the requested batches with the requested threads; nothing is copied between processes."""
        threads, size = _count(arguments, "threads", 1), _count(arguments, "batch_size", 1)
        return Prefetch(threads, None, size, queued=self.queued(arguments), shares_memory=False)

    def asked(self, arguments: Mapping[str, Any], seed: int) -> Asked:
        """The values that these arguments ask for, or the defaults."""
        size, threads = _count(arguments, "batch_size", 1), _count(arguments, "threads", 1)
        return Asked(size, threads, self.queued(arguments), seed, bool(arguments.get("shuffle")))

    def batches(
        self,
        made: MadeByThreads,
        arguments: Mapping[str, Any],
        samples_per_epoch: int,
        cycle: int = 1,
        loading: LoadingThreads | None = None,
    ) -> ThreadBatches:
        """The batches that a trial iterates over."""
        found = self.prefetch(arguments)
        return ThreadBatches(
            made,
            ahead=found.batches or 0,
            cycle=cycle,
            configured=frozenset(arguments.keys() & self.axes.keys()),
            batch_size=found.batch_size,
            samples_per_epoch=samples_per_epoch,
            threads=made.threads,
            end=made.end,
            loading=loading,
        )

    def queued(self, arguments: Mapping[str, Any]) -> int:
        """Number of batches ready or in flight, by default one per thread plus one."""
        return _count(arguments, "queued", _count(arguments, "threads", 1) + 1)


def batches_begun(found: Prefetch) -> int:
    """The most batches that the threads can have begun, if each loads one sample."""
    return -(-(found.workers or 1) // (found.batch_size or 1))


class LoadingThreads:
    """A pool of threads that make batches; each computes with one thread, as torch's workers do.

    `collate_fn` turns samples into a batch. Each thread calls `thread_init_fn`, if set, with its number.
    """

    def __init__(self, count: int, dataset: Any) -> None:
        from torch.utils.data import default_collate

        self.pool = ThreadPoolExecutor(count, thread_name_prefix="loader")
        self.count, self.dataset, self._numbers = count, dataset, set[int]()
        self.collate_fn: Callable[[Any], Any] = default_collate
        self.thread_init_fn: Callable[[int], None] | None = None

    def start(self) -> None:
        """Start all threads.

        torch stores a thread count per thread, once that thread has computed or asked for it. Any other thread inherits
        the count that was set last in the process, so the count of the calling thread is set again.
        """
        import torch

        own, all_begun = torch.get_num_threads(), threading.Barrier(self.count)
        for begun in [self.pool.submit(self._set_up, number, all_begun) for number in range(self.count)]:
            begun.result()
        torch.set_num_threads(own)

    def _set_up(self, number: int, all_begun: threading.Barrier) -> None:
        """Set up a thread, and wait for the others, so no thread runs two setups."""
        import torch

        torch.set_num_threads(1)
        torch.get_num_threads()  # makes the setting stick to this thread
        self._numbers.add(threading.get_native_id())
        all_begun.wait()
        if self.thread_init_fn is not None:
            self.thread_init_fn(number)

    def make(self, indices: Sequence[int]) -> Any:
        """Load a batch as a `DataLoader` does: in one call if the dataset has `__getitems__`."""
        get_all = getattr(self.dataset, "__getitems__", None)
        return self.collate_fn(get_all(indices) if get_all else [self.dataset[index] for index in indices])

    def numbers(self) -> list[int]:
        """Kernel IDs of the running threads."""
        return sorted(self._numbers)

    def end(self) -> None:
        """Drop batches that no thread has started, and wait for the rest."""
        self.pool.shutdown(cancel_futures=True)
        self._numbers.clear()


@contextmanager
def threads_started() -> Iterator[list[int]]:
    """Fill a list with the threads that this process starts inside the context; empty without `/proc`."""
    before, found = set(_threads()), list[int]()
    yield found
    found += [thread for thread in _threads() if thread not in before]


def _threads() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/task")]  # noqa: PTH208 - names are all that is needed
    except OSError:
        return []


def _count(arguments: Mapping[str, Any], name: str, default: int) -> int:
    """A positive count from the arguments, or the default; a saved run can hold any value."""
    given = arguments.get(name)
    return given if isinstance(given, int) and given > 0 else default
