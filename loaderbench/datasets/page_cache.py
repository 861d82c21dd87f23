"""Set the page cache for a trial: warm, with the files in memory, or cold."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

WARM_BYTES = 2 << 30  # larger folders may not stay in memory, and reading them takes minutes


def warm(paths: Iterable[str]) -> None:
    """Read each file once, up to `WARM_BYTES`, so the kernel caches it."""
    room = WARM_BYTES
    for path in paths:
        with suppress(OSError):  # the trial will report this file
            room -= _with_file(path, lambda file: len(os.read(file, os.fstat(file).st_size)))
        if room <= 0:
            return


def evict(paths: Iterable[str]) -> None:
    """Ask the kernel to drop each file's pages, after flushing dirty ones, which would stay. Needs no privileges."""
    if not hasattr(os, "posix_fadvise"):
        raise OSError("measure.cache: cold needs posix_fadvise, which this system lacks; use warm")
    for path in paths:
        _with_file(path, _forget)


def _forget(file: int) -> int:
    with suppress(OSError):  # a read-only file system, such as squashfs, can have no fsync, and no dirty pages
        os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    return 0


def _with_file(path: str, do: Callable[[int], int]) -> int:
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return 0  # the trial will report this file
    try:
        return do(file)
    finally:
        os.close(file)
