"""What a format is: how encoded files are written in parts, and read by number."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Generic, NamedTuple, TypeVar

from loaderbench.per_thread import PerThread

Opened = TypeVar("Opened")

ReadEncoded = Callable[[int], bytes]
"""From the number of a sample to the bytes of its file. Can be pickled, forked, and called in several threads."""


class Item(NamedTuple):
    """A file to store. `key` is unique in a copy and sorts as its samples do; `suffix` begins with a dot."""

    key: str
    suffix: str
    label: int
    data: bytes


class Format(ABC):
    """One value of the option `format`."""

    needs: ClassVar[str] = ""
    """The module of the library that writes and reads it; empty where none is needed."""

    install: ClassVar[str] = ""
    """The command that installs that library."""

    most_parts: ClassVar[int | None] = None
    """How many parts a copy may have; `None` for any number. Parts are what a stopped writer need not write again."""

    def is_installed(self) -> bool:
        """Whether its library is there, without importing it."""
        return not self.needs or find_spec(self.needs) is not None

    @abstractmethod
    def write_part(self, items: Iterable[Item], folder: Path) -> None:
        """Write a part into an empty folder. The same items give the same bytes. Raises what the system raises."""

    def finish(self, folder: Path, parts: Sequence[Path]) -> None:  # noqa: B027 - most formats have none
        """Write what belongs to the copy as a whole, such as an index of its parts, into its folder."""

    @abstractmethod
    def reader(self, parts: Sequence[Path], part_samples: int) -> ReadEncoded:
        """Read a copy whose parts, but the last, hold so many samples."""


class PartReader(ABC, Generic[Opened]):
    """Reads samples by number. Each thread of each process opens a part when it first reads from it."""

    def __init__(self, parts: Sequence[Path], part_samples: int) -> None:
        self._parts, self._part_samples = [*map(str, parts)], part_samples
        self._held = PerThread()

    def __call__(self, number: int) -> bytes:
        """The file of a sample. Raises `OSError`, with the folder of the part, for whatever keeps it from reading."""
        part, place = divmod(number, self._part_samples)
        folder, opened = self._parts[part], self._held.opened()
        try:
            if part not in opened:
                opened[part] = self.open(Path(folder))
            return self.read(opened[part], place)
        except Exception as error:  # each library has its own
            said = f"{folder}: sample {place} cannot be read: {str(error) or type(error).__name__}"
            raise OSError(f"{said}; delete {Path(folder).parent} to write the copy again") from error

    @abstractmethod
    def open(self, part: Path) -> Opened:
        """Open a part."""

    @abstractmethod
    def read(self, opened: Opened, place: int) -> bytes:
        """The encoded file at a place of an open part."""


class Place(NamedTuple):
    """A range of bytes in an open file."""

    file: int
    begin: int
    end: int


def exactly(file: int, size: int, begin: int) -> bytes:
    """So many bytes of a file. Raises `OSError` where it ends before."""
    found = os.pread(file, size, begin)
    if len(found) != size:
        raise OSError("the file is truncated")
    return found
