"""How long a thread may keep the GIL while others wait for it: shorter while any part of loaderbench asks for that."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_RESOLUTION_S = 1e-6
"""Python keeps the interval in whole microseconds."""


class SwitchInterval:
    """The shortest interval that is asked for, in seconds, or else the usual one; threads may ask at the same time.

    A usual interval that is shorter stays. One that the user sets meanwhile becomes the usual one.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a handler of a signal may come in between
        self._asked_s: list[float] = []
        self._usual_s = self._set_s = sys.getswitchinterval()

    def begin(self, seconds: float) -> None:
        """Ask for an interval of at most so many seconds."""
        with self._lock:
            self._notice_the_user()
            self._asked_s.append(seconds)
            self._apply()

    def end(self, seconds: float) -> None:
        """Ask for it no longer."""
        with self._lock:
            self._notice_the_user()
            self._asked_s.remove(seconds)
            self._apply()

    @contextmanager
    def at_most(self, seconds: float) -> Iterator[None]:
        """Ask for it within a `with` block."""
        self.begin(seconds)
        try:
            yield
        finally:
            self.end(seconds)

    def forked(self) -> None:
        """In a child: another thread may have held the lock, and is not there to release it."""
        self._lock = threading.RLock()

    def _notice_the_user(self) -> None:
        now_s = sys.getswitchinterval()
        if not self._asked_s or abs(now_s - self._set_s) > _RESOLUTION_S:
            self._usual_s = now_s

    def _apply(self) -> None:
        self._set_s = min([self._usual_s, *self._asked_s])
        sys.setswitchinterval(self._set_s)


SWITCH_INTERVAL = SwitchInterval()
"""That of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SWITCH_INTERVAL.forked)
