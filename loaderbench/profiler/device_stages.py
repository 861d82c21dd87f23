"""Measures the stages of a loop's body on the device, with events: host times only show queueing and waits.

A copy from pageable memory first waits for all queued work, so its time would include that wait. A copy from pinned
memory returns immediately, even if nothing else runs on the device.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loaderbench.consumers.cuda import CudaWaitClock

Key = tuple[int, int]
"""The kind of a batch, and the number of a stage."""

ENDED = 0
"""In place of a stage: it no longer counts, although the loop has not left it."""


class DeviceStages:
    """Seconds of numbered stages on the stream of the loop's own thread. No method blocks.

    A stage consists of intervals between pairs of events. A nested stage starts its own interval, so stage times add
    up. While a CUDA graph is captured, no event can be recorded, and no interval counts.
    """

    def __init__(self, clock: CudaWaitClock) -> None:
        self._clock = clock
        self._stack: list[int] = []
        self._timed = ENDED  # the stage of the current interval
        self._body: list[int] = []  # stages of the intervals since the last batch
        self._unread: deque[Key] = deque()
        self._noted: Counter[Key] = Counter()
        self._read: Counter[Key] = Counter()
        self._seconds: defaultdict[Key, float] = defaultdict(float)

    def enter(self, stage: int) -> None:
        """Enter a stage."""
        self._end_interval()
        self._stack.append(stage)
        self._begin_interval()

    def leave(self) -> None:
        """Leave the innermost stage."""
        self._end_interval()
        self._stack.pop()
        self._begin_interval()

    def end_body(self, kind: int) -> None:
        """Add the times that the device has reported. Intervals since the last batch belong to a batch of this kind.

        A stage that is open, for example around `next(batches)`, ends here, because the wait that follows is data wait.
        """
        self._end_interval()
        if self._stack:
            self._stack[-1] = ENDED
        found = [(kind, stage) for stage in self._body]
        self._body.clear()
        self._unread.extend(found)
        self._noted.update(found)
        for seconds in self._clock.take_s():
            key = self._unread.popleft()
            self._read[key] += 1
            self._seconds[key] += seconds

    def seconds(self, kind: int, stage: int) -> float | None:
        """Seconds of a stage over all batches of this kind. Unreported intervals count as the mean of the others."""
        key = kind, stage
        return self._seconds[key] * self._noted[key] / self._read[key] if self._read[key] else None

    def _begin_interval(self) -> None:
        self._timed = self._stack[-1] if self._stack and self._clock.can_record else ENDED
        if self._timed != ENDED:
            self._clock.ask()

    def _end_interval(self) -> None:
        if self._timed != ENDED and self._clock.can_record:
            self._clock.got()
            self._body.append(self._timed)
        self._timed = ENDED
