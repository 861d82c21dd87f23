"""How soon a thread gets the GIL: a short switch interval while loaderbench requests it, and exact timeouts."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_RESOLUTION_S = 1e-6
"""Python rounds the interval to microseconds."""

_PR_SET_TIMERSLACK = 29  # from <linux/prctl.h>


class SwitchInterval:
    """Apply the shortest requested interval, in seconds, or else the usual one. Threads can request concurrently.

    A usual interval that is shorter stays in effect. If the user sets an interval later, it becomes the usual one.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # reentrant, because a signal handler can interrupt the holder
        self._asked_s: list[float] = []
        self._usual_s = self._set_s = sys.getswitchinterval()

    def begin(self, seconds: float) -> None:
        """Request an interval of at most this many seconds."""
        with self._lock:
            self._notice_the_user()
            self._asked_s.append(seconds)
            self._apply()

    def end(self, seconds: float) -> None:
        """Withdraw a request, unless a fork did."""
        with self._lock:
            self._notice_the_user()
            if seconds in self._asked_s:
                self._asked_s.remove(seconds)
            self._apply()

    @contextmanager
    def at_most(self, seconds: float) -> Iterator[None]:
        """Request an interval within a `with` block."""
        self.begin(seconds)
        try:
            yield
        finally:
            self.end(seconds)

    def forked(self) -> None:
        """Withdraw all requests in a forked child, where the threads that made them do not exist.

        The lock is replaced, because such a thread can hold it.
        """
        self._lock = threading.RLock()
        self._asked_s.clear()
        self._apply()

    def _notice_the_user(self) -> None:
        now_s = sys.getswitchinterval()
        if not self._asked_s or abs(now_s - self._set_s) > _RESOLUTION_S:
            self._usual_s = now_s

    def _apply(self) -> None:
        self._set_s = min([self._usual_s, *self._asked_s])
        sys.setswitchinterval(self._set_s)


SWITCH_INTERVAL = SwitchInterval()
"""The switch interval of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SWITCH_INTERVAL.forked)


def wake_promptly() -> None:
    """End the timeouts of this thread when they are due; Linux otherwise adds up to 50 µs. Source: prctl(2)."""
    if sys.platform == "linux":
        with suppress(AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1)
