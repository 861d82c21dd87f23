"""The interface of a format: write encoded files in parts, and read them by number."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from loaderbench.libraries import is_installed
from loaderbench.per_thread import PerThread

Opened = TypeVar("Opened")

ReadEncoded = Callable[[int], bytes]
"""Returns the contents of a sample's file by number. Can be pickled, forked, and called from several threads."""


class Item(NamedTuple):
    """A file to store. `key` is unique in a copy and sorts in sample order; `suffix` begins with a dot."""

    key: str
    suffix: str
    label: int
    data: bytes


class Format(ABC):
    """A value of the option `format`."""

    needs: ClassVar[str] = ""
    """The module of the library that reads and writes the format; empty if none is needed."""

    install: ClassVar[str] = ""
    """The command that installs the library."""

    most_parts: ClassVar[int | None] = None
    """Maximum number of parts of a copy; `None` for no limit. An interrupted writer keeps complete parts."""

    reads: ClassVar[type[PartReader[Any]]]
    """The class that reads samples by number."""

    def is_installed(self) -> bool:
        """Whether the library is installed, without importing it."""
        return not self.needs or is_installed(self.needs)

    @abstractmethod
    def write_part(self, items: Iterable[Item], folder: Path) -> None:
        """Write a part into an empty folder, with the same bytes for the same items. Raises the system's exceptions."""

    def finish(self, folder: Path, parts: Sequence[Path]) -> None:  # noqa: B027 - most formats have none
        """Write files of the complete copy, such as an index of its parts, into the copy's folder."""

    def reader(self, parts: Sequence[Path], part_samples: int) -> ReadEncoded:
        """Return a reader of a copy whose parts, except the last, hold `part_samples` samples."""
        return self.reads(parts, part_samples)


class _OfAllThreads(PerThread):
    """One dictionary for all threads, which forked processes inherit. It is empty in a pickled copy."""

    def __init__(self) -> None:
        super().__init__()
        self._opened: dict[Any, Any] = {}

    def opened(self) -> dict[Any, Any]:
        return self._opened

    def __reduce__(self) -> tuple[Any, ...]:
        return _OfAllThreads, ()


class PartReader(ABC, Generic[Opened]):
    """Read samples by number. A part is opened when it is first read."""

    threads_share: ClassVar[bool] = False
    """Whether all threads can read from one open part; otherwise, each thread of each process opens its own."""

    def __init__(self, parts: Sequence[Path], part_samples: int) -> None:
        self._parts, self._part_samples = [*map(str, parts)], part_samples
        self._held = _OfAllThreads() if self.threads_share else PerThread()

    def __call__(self, number: int) -> bytes:
        """Return the file of a sample. Raises `OSError`, with the folder of the part, on any failure to read it."""
        part, place = divmod(number, self._part_samples)
        folder, opened = self._parts[part], self._held.opened()
        try:
            if part not in opened:
                own = self.open(Path(folder))
                if opened.setdefault(part, own) is not own:  # another thread was faster
                    self.close(own)
            return self.read(opened[part], place)
        except Exception as error:  # each library has its own exceptions
            problem = f"{folder}: sample {place} cannot be read: {str(error) or type(error).__name__}"
            if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
                raise OSError(error.errno, f"{problem}; raise the limit: ulimit -n") from error
            raise OSError(f"{problem}; delete {Path(folder).parent} to write the copy again") from error

    @abstractmethod
    def open(self, part: Path) -> Opened:
        """Open a part."""

    def close(self, opened: Opened) -> None:
        """Close a part that another thread opened, too."""

    @abstractmethod
    def read(self, opened: Opened, place: int) -> bytes:
        """Return the encoded file at this position of an open part."""


class Place(NamedTuple):
    """A range of bytes in an open file."""

    file: int
    begin: int
    end: int


class SharedReader(PartReader[list[Place]]):
    """Read samples with single system calls. All threads share an open part."""

    threads_share: ClassVar[bool] = True

    def close(self, opened: list[Place]) -> None:
        """Close the files."""
        for file in {place.file for place in opened}:
            os.close(file)


def exactly(file: int, size: int, begin: int) -> bytes:
    """Read exactly `size` bytes of a file. Raises `OSError` if the file ends before."""
    found = os.pread(file, size, begin)
    if len(found) != size:
        raise OSError("the file is truncated")
    return found
