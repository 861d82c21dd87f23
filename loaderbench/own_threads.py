"""Threads of loaderbench in a process of the user."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class OwnThread(threading.Thread):
    """A daemon thread. A script that joins each of `threading.enumerate()` does not wait for it."""

    def __init__(self, name: str, run: Callable[..., None], *arguments: Any) -> None:
        super().__init__(target=run, args=arguments, name=f"loaderbench-{name}", daemon=True)

    def join(self, timeout: float | None = None) -> None:
        """Return at once: see `wait`."""

    def wait(self, seconds: float) -> None:
        """Wait until the thread has ended, at most for `seconds`. At once if it never began, or is the caller."""
        if self.ident is not None and self is not threading.current_thread():
            super().join(seconds)
