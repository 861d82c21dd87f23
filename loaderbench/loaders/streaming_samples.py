"""Endless samples of the MDS copy of an image folder, streamed by MosaicML's Streaming."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from streaming import StreamingDataset
from streaming.base.batching import generate_work
from torch import distributed

from loaderbench.formats import StoredCopy
from loaderbench.loaders.chunk_samples import ChunkSamples, Stored
from loaderbench.ranks import has_ranks, rank_and_ranks

_EPOCHS = 64  # cached epochs: a worker prefetches across several epochs of a small dataset


class MdsSamples(ChunkSamples):
    """Endless pairs of image and label: epoch after epoch of the library, without a pause in between."""

    def __init__(self, copy: StoredCopy, source: Any, *, shuffle: bool, batch_size: int, seed: int) -> None:
        super().__init__(copy, source)
        with _ranks_in_environment():
            self._stored = EndlessMds(local=str(copy.folder), shuffle=shuffle, shuffle_seed=seed, batch_size=batch_size)

    @property
    def per_epoch(self) -> int:
        """The number of samples of this rank in an epoch."""
        return len(self._stored)

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        stream = iter(self._stored)
        while True:
            yield self.image_of(self.reader(stream))

    def release(self) -> None:
        """End the threads of this process, and remove what the library leaves behind. Can be called repeatedly."""
        self._stored.release()


class EndlessMds(StreamingDataset):  # type: ignore[misc]
    """A `StreamingDataset` with the library's reading and order, but without its barrier between epochs.

    The barrier would block a worker forever if workers have read unequal numbers of samples, or if one of them has
    ended.
    """

    def _resume_incr_epoch(self) -> Any:
        """Return where to begin."""
        return self._resume(self._parallel_worker_world, 0)

    def _get_work(self, epoch: int, sample_in_epoch: int) -> Any:
        """Return the order of the samples of this worker."""
        return WorkerOrder(self, self._parallel_worker_world)

    def get_item(self, sample_id: int, retry: int = 7) -> Stored:
        """Return a sample with its number."""
        found = super().get_item(sample_id, retry)
        return found["image"], found["label"], int(sample_id)

    def release(self) -> None:
        """End the threads, unlink shared memory, and delete the lock files."""
        if hasattr(self, "_iterator"):
            self._iterator.non_blocking_exit()
        if hasattr(self, "_executor"):
            self._executor.shutdown()
        arrays = self._shared_barrier._arr, self._shard_states, self._shard_access_times
        scalars = self._next_epoch, self._cache_usage
        for shared in (self._locals_shm, *(a.shm for a in arrays), *(s.arr.shm for s in scalars)):
            atexit.unregister(shared.cleanup)  # a forked process never runs atexit handlers
            shared.cleanup()
        for lock in ("barrier_filelock", "cache_filelock"):
            Path(gettempdir(), f"{self._shm_prefix_int:06}_{lock}").unlink(missing_ok=True)


class WorkerOrder:
    """The endless sequence of a worker's sample numbers, in the batches that a `DataLoader` takes from this worker."""

    def __init__(self, dataset: EndlessMds, world: Any) -> None:
        self._dataset, self._world, self._batch_size = dataset, world, dataset.batch_size
        self._epoch = lru_cache(maxsize=_EPOCHS)(self._order)
        self._per_epoch = len(self._epoch(0))

    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, place: int) -> int:
        batch, rest = divmod(place, self._batch_size)
        number = batch * self._world.workers_per_rank + self._world.worker_of_rank
        epoch, at = divmod(number * self._batch_size + rest, self._per_epoch)
        return int(self._epoch(epoch)[at])

    def _order(self, epoch: int) -> Any:
        """The samples of this rank in an epoch: batches of the workers in turn, without padding."""
        every = generate_work(self._dataset.batching_method, self._dataset, self._world, epoch, 0)
        order = every[self._world.node, self._world.rank_of_node].transpose(1, 0, 2).reshape(-1)
        return order[order >= 0]


@contextmanager
def _ranks_in_environment() -> Iterator[None]:
    """Set the variables of torch's launcher, from which the library reads the rank of this process."""
    added: dict[str, str] = {}
    if has_ranks():
        rank, count = map(str, rank_and_ranks())
        usual = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": count}
        added = {name: value for name, value in usual.items() if name not in os.environ}
        distributed.barrier()  # each rank searches for a free name, which another rank may still be releasing
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
