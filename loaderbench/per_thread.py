"""What each thread of each process opens for itself: handles and connections that must not be shared."""

from __future__ import annotations

import os
import threading
from typing import Any

_OF_PARENT: list[dict[Any, Any]] = []
"""Kept in a process by the thread that forked it: closing them could wait for threads that a fork does not copy."""


class PerThread:
    """A dictionary for each thread. A forked process begins with empty ones, and so does a pickled copy."""

    def __init__(self) -> None:
        self._local = threading.local()

    def opened(self) -> dict[Any, Any]:
        """What this thread has opened in this process, to be added to."""
        opened_in = getattr(self._local, "pid", None)
        if opened_in != os.getpid():
            if opened_in is not None:
                _OF_PARENT.append(self._local.opened)
            self._local.pid, self._local.opened = os.getpid(), {}
        found: dict[Any, Any] = self._local.opened
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return PerThread, ()
