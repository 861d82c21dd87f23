"""Files: complete or not at all, under names that are free, and locked until their holder ends in any way."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows has no flock, and needs none here
    fcntl = None  # type: ignore[assignment]

CAN_LOCK = fcntl is not None
"""Whether this system supports such locks."""


def write_whole(file: Path, content: str | bytes, *, shared: bool = False, sync: bool = False) -> None:
    """Write a file, text in UTF-8, or leave it as it was and raise `OSError`. For the options, see `whole_file`."""
    with whole_file(file, shared=shared, sync=sync) as part:
        if isinstance(content, bytes):
            part.write_bytes(content)
        else:
            part.write_text(content, encoding="utf-8")


@contextmanager
def whole_file(file: Path, *, shared: bool = False, sync: bool = False) -> Iterator[Path]:
    """A hidden path next to the file, which replaces the file at the end. After an exception, the file is unchanged.

    `shared`: other threads and processes may write the same file at the same time, so this thread gets its own path.
    `sync`: the content is on the disk before the file is replaced.
    """
    own = f"{os.getpid()}-{threading.get_ident()}." if shared else ""
    part = file.with_name(f".{file.name}.{own}part")
    try:
        yield part
        if sync:
            with part.open("ab") as written:
                os.fsync(written.fileno())
        part.replace(file)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def free_place(wanted: Path) -> Path:
    """The path, with a number appended if it exists."""
    return next(place for place in map(wanted.with_name, numbered(wanted.name)) if not place.exists())


def numbered(name: str) -> Iterator[str]:
    """The name alone, then with numbers, without end: `name`, `name-2`, `name-3`."""
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def hold(file: IO[Any]) -> bool | None:
    """Take the lock of an open file until the file is closed; `False` if another process holds it.

    `None` if unknown: some file systems, including network file systems, do not support locks.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
