"""How long the steps of a loop wait for batches of other loaders, for example if one loop uses two loaders."""

from __future__ import annotations

import threading
import time

from loaderbench.profiler.other_loaders import waits_for_others

_now_s = time.perf_counter


class _Waited(threading.local):
    """Seconds that this thread has waited for batches of any recorded loader."""

    seconds = 0.0


_waited = _Waited()


class OtherWaits:
    """The waits of one loop, over all epochs. Called for every batch, before and after the loop waits for it."""

    __slots__ = ("_asked_s", "_has_batch", "_others_s", "_own_s", "_steps_s", "_waited_s")

    def __init__(self) -> None:
        self._asked_s = self._waited_s = 0.0  # when the last batch was requested; the total wait when it arrived
        self._steps_s = self._others_s = self._own_s = 0.0  # of all steps; of waits for other loaders and for this one
        self._has_batch = False

    def asks(self) -> None:
        """Note that the loop asks for the next batch, which ends the step with the last one."""
        now_s = _now_s()
        if self._has_batch:
            self._steps_s += now_s - self._asked_s
            self._others_s += _waited.seconds - self._waited_s
            self._has_batch = False
        self._asked_s = now_s

    def got(self) -> None:
        """Note that the batch has arrived."""
        took_s = _now_s() - self._asked_s
        self._own_s += took_s
        _waited.seconds += took_s
        self._waited_s, self._has_batch = _waited.seconds, True

    def leave(self) -> None:
        """Note that the epoch is over. The time until the next epoch belongs to no step."""
        self._has_batch = False

    @property
    def share(self) -> float:
        """Waits for other loaders, as a share of the time of all finished steps, request to request."""
        return self._others_s / self._steps_s if self._steps_s else 0.0

    @property
    def are_for_others(self) -> bool:
        """Whether the loop waits for batches of other loaders rather than for its own."""
        return waits_for_others(self.share, self._own_s / self._steps_s if self._steps_s else None)
