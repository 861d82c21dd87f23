"""A file lock that the system releases when its holder ends, in any way."""

from __future__ import annotations

from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows has no flock, and needs none here
    fcntl = None  # type: ignore[assignment]

KNOWN = fcntl is not None
"""Whether this system supports such locks."""


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
