"""Endless samples of the `litdata` copy of an image folder, streamed by Lightning's LitData."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from litdata import StreamingDataset
from litdata.utilities.env import _WorkerEnv
from torch.utils.data import get_worker_info

from loaderbench.formats import StoredCopy
from loaderbench.loaders.chunk_samples import ChunkSamples, Stored, of_worker
from loaderbench.ranks import has_ranks


class LitdataSamples(ChunkSamples):
    """Endless pairs of image and label.

    With `shuffle`, each worker of each rank reads its own samples, in a new order in each epoch. Otherwise samples come
    in the order of the files: each worker reads all samples, and decodes only its own batches.
    """

    def __init__(
        self, copy: StoredCopy, source: Any, *, shuffle: bool, batch_size: int, workers: int, seed: int
    ) -> None:
        super().__init__(copy, source)
        self._stored = NumberedItems(str(copy.folder), shuffle=shuffle, seed=seed)
        self._shuffle, self._batch_size = shuffle, batch_size
        self._stored.set_batch_size(batch_size)
        divided = workers if shuffle else 1
        self._stored.set_num_workers(divided)
        self.per_epoch = self._stored.get_len(divided, batch_size) if has_ranks() else copy.about.samples
        self._stored.cache = self._stored.shuffler = None  # each worker opens its own cache
        if self.per_epoch < max(divided, 1):
            raise ValueError(f"only {self.per_epoch} samples per rank for {workers} workers; use fewer workers")

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        info = get_worker_info()
        stream = self._epochs() if self._shuffle else self._in_order(*(info.id, info.num_workers) if info else (0, 1))
        while True:
            yield self.image_of(self.reader(stream))

    def release(self) -> None:
        """Close the files that this process has mapped."""
        self._stored.cache = self._stored.shuffler = None

    def _in_order(self, worker: int, workers: int) -> Iterator[Stored]:
        """The samples of this rank in the batches of this worker."""
        self._stored._forced_worker_env = _WorkerEnv(1, 0)
        return of_worker(self._epochs(), self._batch_size, worker, workers)

    def _epochs(self) -> Iterator[Stored]:
        """Yield epoch after epoch. Raises `ValueError` if this worker has no samples."""
        while True:
            count = 0
            for found in self._stored:
                yield found
                count += 1
            if not count:
                raise ValueError("a worker has no samples; use fewer workers, or a smaller batch_size")


class NumberedItems(StreamingDataset):  # type: ignore[misc]
    """A streaming dataset that yields image, label and the number of the sample."""

    number = 0

    def __iter__(self) -> Iterator[Stored]:
        """Return a separate iterator: the library returns the dataset itself."""
        super().__iter__()
        while True:
            try:
                image, label = self.__next__()
            except StopIteration:
                return
            yield image, label, self.number

    def __getitem__(self, index: Any) -> Any:
        """Return the item at the library's index, and remember its number."""
        self.number = int(getattr(index, "index", index))
        return super().__getitem__(index)
