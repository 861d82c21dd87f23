"""Handles and connections that each thread of each process opens for itself and must not share."""

from __future__ import annotations

import os
import threading
from typing import Any

_OF_PARENT: list[dict[Any, Any]] = []
"""Objects kept alive after a fork: closing them could wait for threads that a fork does not copy."""


class PerThread:
    """A dictionary per thread. It is empty in a forked process, and in a pickled copy."""

    def __init__(self) -> None:
        self._local = threading.local()

    def opened(self) -> dict[Any, Any]:
        """The dictionary of this thread in this process, for callers to fill."""
        opened_in = getattr(self._local, "pid", None)
        if opened_in != os.getpid():
            if opened_in is not None:
                _OF_PARENT.append(self._local.opened)
            self._local.pid, self._local.opened = os.getpid(), {}
        found: dict[Any, Any] = self._local.opened
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return PerThread, ()
