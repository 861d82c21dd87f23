"""How long the steps of a loop wait for batches of other loaders, as where one loop takes batches of two."""

from __future__ import annotations

import threading
import time

from loaderbench.profiler.other_loaders import waits_for_others

_now_s = time.perf_counter


class _Waited(threading.local):
    """What this thread has waited for batches of any recorded loader, in seconds."""

    seconds = 0.0


_waited = _Waited()


class OtherWaits:
    """Of one loop, over its epochs. Called for every batch, before and after it is waited for."""

    __slots__ = ("_asked_s", "_has_batch", "_others_s", "_own_s", "_steps_s", "_waited_s")

    def __init__(self) -> None:
        self._asked_s = self._waited_s = 0.0  # when the last batch was asked for, and waited for until it came
        self._steps_s = self._others_s = self._own_s = 0.0  # of all steps, and of the waits in them
        self._has_batch = False

    def asks(self) -> None:
        """The next batch is asked for, and the step with the last one is over."""
        now_s = _now_s()
        if self._has_batch:
            self._steps_s += now_s - self._asked_s
            self._others_s += _waited.seconds - self._waited_s
            self._has_batch = False
        self._asked_s = now_s

    def got(self) -> None:
        """It is there."""
        took_s = _now_s() - self._asked_s
        self._own_s += took_s
        _waited.seconds += took_s
        self._waited_s, self._has_batch = _waited.seconds, True

    def leave(self) -> None:
        """The epoch is over: what happens until the next one is no step."""
        self._has_batch = False

    @property
    def share(self) -> float:
        """Of the time of all steps that ended, from one request for a batch to the next."""
        return self._others_s / self._steps_s if self._steps_s else 0.0

    @property
    def are_for_others(self) -> bool:
        """Whether the loop waits for batches of other loaders, and for them rather than for its own."""
        return waits_for_others(self.share, self._own_s / self._steps_s if self._steps_s else None)
