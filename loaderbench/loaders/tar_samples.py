"""Samples of the tar copy of an image folder, streamed by WebDataset and batched by torch's `DataLoader`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from torch.utils.data import get_worker_info

from loaderbench.formats import StoredCopy
from loaderbench.formats.tar import LABEL, SHARD
from loaderbench.loaders.chunk_samples import ChunkSamples, NextOfStream, Stored, of_worker
from loaderbench.loaders.seeded import mixed
from loaderbench.object_store import ObjectStore
from loaderbench.ranks import MOST_RANKS, check_enough, rank_and_ranks

_LABEL = LABEL.removeprefix(".")


class NextOfShards(NextOfStream):
    """Take the next sample, and name the shard if it cannot be read."""

    def said_by(self, error: Exception) -> str:
        """The message without the stream, which WebDataset appends."""
        return super().said_by(error).partition(" @ ")[0]

    def place_of(self, error: Exception) -> str:
        """The shard that could not be read, which WebDataset adds to the error's arguments with the file's name."""
        known = [*error.args, getattr(error, "filename", None)]
        shard = next((part for part in known[::-1] if isinstance(part, str) and part.endswith(SHARD)), None)
        return shard or super().place_of(error)


class Parts:
    """The shards of a copy, each by its path or by its address in a store."""

    def __init__(self, copy: StoredCopy) -> None:
        self.addresses = [str(part / SHARD) for part in copy.parts]
        self._store: ObjectStore | None = None
        if copy.store is not None:
            names = [f"{part.name}/{SHARD}" for part in copy.parts]
            self._store = ObjectStore(copy.store, names)
            self.addresses = [self._store.address(number) for number in range(len(names))]

    def opened(self, shards: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Open the shards sequentially. WebDataset's own function leaves closing them to the garbage collector."""
        for shard in shards:
            with self._open(shard["url"]) as stream:
                yield {**shard, "stream": stream}

    def _open(self, address: str) -> AbstractContextManager[Any]:
        if self._store is None:
            return Path(address).open("rb")
        return self._store.stream(self.addresses.index(address))


class TarSamples(ChunkSamples):
    """Endless pairs of image and label.

    With a `buffer`, each worker of each rank reads its own shards, in a new order in each epoch, and draws from a
    buffer of that many files. Otherwise samples come in the order of the files: each worker reads all shards, and
    decodes only its own batches.
    """

    def __init__(self, copy: StoredCopy, source: Any, *, buffer: int | None, batch_size: int, seed: int) -> None:
        super().__init__(copy, source)
        self.reader = NextOfShards(copy)
        self._parts, self._sizes = Parts(copy), copy.part_sizes
        self._shards = self._parts.addresses
        self._buffer, self._batch_size, self._seed = buffer, batch_size, seed
        self._rank, self._ranks = rank_and_ranks()

    @property
    def per_epoch(self) -> int:
        """The number of samples of this rank in an epoch."""
        if self._buffer is None:
            return len(range(self._rank, sum(self._sizes), self._ranks))
        return sum(self._sizes[self._rank :: self._ranks])

    def check_workers(self, count: int) -> None:
        """Raise `ValueError` if a worker of any rank would have nothing to read."""
        unit, there = ("sample", sum(self._sizes)) if self._buffer is None else ("shard", len(self._shards))
        check_enough(there, unit, self._ranks)
        most = there // self._ranks
        if unit == "shard" and count > most:
            available = "1 shard" if there == 1 else f"{there} shards"
            each = available if self._ranks == 1 else f"{available} in {self._ranks} ranks"
            raise ValueError(f"{count} workers, but {each}: each worker needs its own shard; use at most {most}")

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        info = get_worker_info()
        place = (info.id, info.num_workers) if info else (0, 1)
        stream = self._in_order(*place) if self._buffer is None else self._shuffled(*place)
        while True:
            yield self.image_of(self.reader(stream))

    def _shuffled(self, worker: int, workers: int) -> Iterator[Stored]:
        """Samples from this worker's shards. WebDataset's own division ignores ranks in a spawned process."""
        own = slice(self._rank, None, self._ranks), slice(worker, None, workers)
        shards, sizes = self._shards[own[0]][own[1]], self._sizes[own[0]][own[1]]
        seed = mixed(self._seed, worker * MOST_RANKS + self._rank)
        return self._epochs(shards, sum(sizes), seed)

    def _in_order(self, worker: int, workers: int) -> Iterator[Stored]:
        """The samples of this rank in the batches of this worker."""
        every = self._epochs(self._shards, sum(self._sizes))
        own = (found for found in every if found[2] % self._ranks == self._rank)
        return of_worker(own, self._batch_size, worker, workers)

    def _epochs(self, shards: list[str], expected: int, seed: int | None = None) -> Iterator[Stored]:
        """Yield epoch after epoch. Raises `OSError` if an epoch has fewer samples than expected."""
        import webdataset as wds
        from webdataset.tariterators import group_by_keys, tar_file_expander

        stages = [wds.SimpleShardList(shards), self._parts.opened, tar_file_expander, group_by_keys]
        if seed is not None:  # each epoch is shuffled differently
            stages.insert(1, wds.detshuffle(len(shards), len(shards), seed))
            stages.append(wds.detshuffle(self._buffer, seed=seed))
        pipeline = wds.DataPipeline(*stages)
        while True:
            count = 0
            for found in pipeline:
                if _LABEL in found:  # a shard can end between the files of a sample
                    encoded = next(data for name, data in found.items() if name != _LABEL and not name.startswith("__"))
                    yield encoded, int(found[_LABEL]), int(found["__key__"])
                    count += 1
            if count != expected:
                raise OSError(f"{count} samples instead of {expected}")
