"""The format `lmdb`: one LMDB environment, a file with a B+ tree that all processes map into memory.

The key is the key of an item. The value is the label, in 8 bytes, followed by the encoded image.
"""

from __future__ import annotations

import errno
import os
import shutil
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from weakref import WeakValueDictionary

from loaderbench.formats.format import Format, Item, PartReader

LABEL = struct.Struct("<q")
"""The header of a value: the label, as a little-endian signed integer."""

COMMIT_BYTES = 16 << 20
"""Size of a transaction, whose pages stay in memory until the commit."""

_DATA = "data.mdb"
_FIRST_MAP_BYTES = 64 << 20
_WHY = {os.strerror(number): number for number in errno.errorcode}


class OpenEnvironment(NamedTuple):
    """A transaction of this thread, the first key as a number, and its number of digits."""

    transaction: Any
    first: int
    digits: int


class LmdbReader(PartReader[OpenEnvironment]):
    """Read from a memory-mapped file that all threads of a process share."""

    def open(self, part: Path) -> OpenEnvironment:
        """Begin a read transaction and keep it open, since the environment never changes."""
        transaction = ENVIRONMENTS.of(part).begin(buffers=True)
        with transaction.cursor() as cursor:
            if not cursor.first():
                raise ValueError("it is empty")
            key = bytes(cursor.key())
        return OpenEnvironment(transaction, int(key), len(key))

    def read(self, opened: OpenEnvironment, place: int) -> bytes:
        """Copy one value, without its label."""
        key = b"%0*d" % (opened.digits, opened.first + place)
        found = opened.transaction.get(key)
        if found is None:
            raise ValueError(f"no key {key.decode()}")
        return bytes(found[LABEL.size :])


class Lmdb(Format):
    """An LMDB environment."""

    needs: ClassVar[str] = "lmdb"
    install: ClassVar[str] = "uv pip install lmdb"
    most_parts: ClassVar[int | None] = 1
    reads: ClassVar[type[PartReader[Any]]] = LmdbReader

    def write_part(self, items: Iterable[Item], folder: Path) -> None:
        """Write one environment. It needs no lock, since no other process uses it yet."""
        lmdb: Any = import_module("lmdb")
        try:
            with lmdb.open(str(folder), map_size=_FIRST_MAP_BYTES, lock=False, sync=False) as environment:
                for some in _by_size(items):
                    _commit(lmdb, environment, some)
        except lmdb.Error as error:
            raise of_system(error, folder) from error


class Environments:
    """The open environments of this process. LMDB refuses to open one twice, so threads and readers share them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._files: dict[str, tuple[int, int]] = {}
        self._inherited: list[Any] = []

    def of(self, folder: Path) -> Any:
        """The environment of a folder, opened on first use. Raises `OSError` if it is truncated."""
        with self._lock:
            while self._inherited:
                self._inherited.pop().close()
            path, file = os.path.realpath(folder), _identity(folder)
            found = self._open.get(path)
            if found is not None and self._files[path] != file:  # the file was rewritten
                found.close()
                found = None
            if found is None:
                found = self._open[path] = _opened(folder)
                self._files[path] = file
            return found

    def forget(self) -> None:
        """After a fork: close the inherited environments before this process opens one."""
        self._lock = threading.Lock()
        self._inherited += self._open.values()
        self._open = WeakValueDictionary()


ENVIRONMENTS = Environments()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ENVIRONMENTS.forget)


def _opened(folder: Path) -> Any:
    """Open an environment read-only. Locks are off: their reader table would limit the number of reading processes."""
    lmdb: Any = import_module("lmdb")
    environment = lmdb.open(str(folder), readonly=True, create=False, lock=False, readahead=False)
    needed = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
    if (folder / _DATA).stat().st_size < needed:  # reading from its map would kill the process
        environment.close()
        raise OSError(f"{_DATA} is truncated")
    return environment


def _identity(folder: Path) -> tuple[int, int]:
    found = (folder / _DATA).stat()
    return found.st_ino, found.st_mtime_ns


def _by_size(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield groups of items of about `COMMIT_BYTES` each."""
    some, size = list[Item](), 0
    for item in items:
        some.append(item)
        size += len(item.data)
        if size >= COMMIT_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _commit(lmdb: Any, environment: Any, items: Sequence[Item]) -> None:
    """Write items in one transaction, and double the map while it is too small."""
    while True:
        try:
            with environment.begin(write=True) as transaction:
                for item in items:
                    transaction.put(item.key.encode(), LABEL.pack(item.label) + item.data, append=True)
        except lmdb.MapFullError:
            environment.set_mapsize(2 * environment.info()["map_size"])
        else:
            return


def of_system(error: Exception, folder: Path) -> OSError:
    """Recover the system's error from LMDB's text. LMDB reports a partial write, as on a full disk, as EIO."""
    number = _WHY.get(str(error).rpartition(": ")[2], errno.EIO)
    if number == errno.EIO and shutil.disk_usage(folder).free < COMMIT_BYTES:
        number = errno.ENOSPC
    return OSError(number, str(error))
