"""A lock that the system gives back when its holder ends, however it ends."""

from __future__ import annotations

from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows has other locks, and needs none here
    fcntl = None  # type: ignore[assignment]

KNOWN = fcntl is not None
"""Whether this system has such locks."""


def hold(file: IO[Any]) -> bool | None:
    """Take the lock of an open file until it is closed; `False` where another process holds it.

    `None` where nobody can tell: some file systems, those of a network among them, know no locks.
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
