"""Shared code of loaders whose workers stream a copy: find it, take the next sample, decode its image, make batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch.utils.data import IterableDataset

from loaderbench.errors import BadImageError
from loaderbench.formats import StoredCopy
from loaderbench.loaders.image_files import copy_in
from loaderbench.loaders.seeded import SeededSamples
from loaderbench.loaders.shuffle_buffer import AXIS, of_data_loader
from loaderbench.loaders.torch_loader import TorchBatches, build_loader
from loaderbench.ranks import has_ranks

Stored = tuple[bytes, int, int]
"""The contents of a file, its label, and the number of the sample."""


class NextOfStream:
    """Take the next sample of a stream. Stored in an attribute named `reader`, it is timed as the stage read."""

    def __init__(self, copy: StoredCopy) -> None:
        self._copy = copy.store or str(copy.folder)
        folder = copy.folder
        self._advice = f"upload {folder} again" if copy.store else f"delete {folder} to write the copy again"

    def __call__(self, stream: Iterator[Stored]) -> Stored:
        """Return the next sample. Raises `OSError`, with `place_of` the error, if it cannot be read.

        The message does not advise another upload if the store itself could not be read.
        """
        try:
            return next(stream)
        except Exception as error:  # each library has its own exceptions; WebDataset adds the file to the arguments
            said, where = self.said_by(error), self.place_of(error)
            if isinstance(error, ConnectionError):
                raise OSError(said) from error
            named = said if said.startswith(where) else f"{where}: cannot be read: {said}"
            raise OSError(f"{named}; {self._advice}") from error

    def said_by(self, error: Exception) -> str:
        """Why the sample could not be read."""
        return str(getattr(error, "strerror", None) or next(iter(error.args), "") or type(error).__name__)

    def place_of(self, error: Exception) -> str:
        """What could not be read: the copy."""
        return self._copy


class ChunkSamples(IterableDataset[tuple[Any, int]]):
    """Decode and transform the samples that a library streams. `loader`, `transform` and `reader` are the stages."""

    def __init__(self, copy: StoredCopy, source: Any) -> None:
        self.loader, self.transform, self.reader = source.loader, source.transform, NextOfStream(copy)
        self._files = source.samples  # under the name `samples`, the list would be indexed by a sample's running number

    def image_of(self, found: Stored) -> tuple[Any, int]:
        """Return image and label. Raises `BadImageError`, with the file, if the image cannot be decoded."""
        encoded, label, number = found
        try:
            image = self.loader(encoded)
        except Exception as error:
            raise BadImageError(f"{self._files[number][0]}: {type(error).__name__}: {error}") from error
        return self.transform(image), label

    def release(self) -> None:
        """Release what the library holds in this process; nothing by default."""


@dataclass(frozen=True)
class ChunkBatches(TorchBatches):
    """Batches of a `DataLoader` over `samples`, which the library divides among ranks."""

    samples: Any = None

    @property
    def is_divided(self) -> bool:
        """True in a process group: each rank reads its own samples."""
        return has_ranks()

    def close(self, iterator: Iterator[Any] | None = None) -> None:
        """Shut down the workers, then release the resources of the samples in this process."""
        super().close(iterator)
        self.samples.release()


def chunk_batches(samples: Any, arguments: Mapping[str, Any], *, seed: int) -> ChunkBatches:
    """Build a `DataLoader` over endless samples, and release the samples if that fails."""
    try:
        found = build_loader(samples, of_data_loader(arguments), seed=seed)
    except BaseException:
        samples.release()
        raise
    configured = found.configured | arguments.keys() & {"shuffle", AXIS}
    return ChunkBatches(
        found.iterable, found.ahead, found.cycle, configured, found.batch_size, samples.per_epoch, samples=samples
    )


def copy_of(source: Any, loader: str, name: str) -> StoredCopy:
    """The copy of a dataset. Raises `TypeError` if it has none, or one in another format."""
    if isinstance(source, SeededSamples):
        raise TypeError(f"measure.deterministic: loader: {loader} does not seed each sample; leave it out")
    return copy_in(source, loader, name)


def of_worker(stream: Iterable[Stored], batch_size: int, worker: int, workers: int) -> Iterator[Stored]:
    """Select, from all samples in order, those in the batches that a `DataLoader` takes from this worker."""
    for place, found in enumerate(stream):
        if place // batch_size % workers == worker:
            yield found
