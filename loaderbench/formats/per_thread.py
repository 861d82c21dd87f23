"""What each thread of each process opens for itself: handles and connections that must not be shared."""

from __future__ import annotations

import os
import threading
from typing import Any


class PerThread:
    """A dictionary for each thread. A forked process begins with empty ones, and so does a pickled copy."""

    def __init__(self) -> None:
        self._local = threading.local()

    def opened(self) -> dict[Any, Any]:
        """What this thread has opened in this process, to be added to."""
        if getattr(self._local, "pid", None) != os.getpid():
            self._local.pid, self._local.opened = os.getpid(), {}
        found: dict[Any, Any] = self._local.opened
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return PerThread, ()
