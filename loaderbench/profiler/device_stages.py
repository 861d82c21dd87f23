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


class DeviceStages:
    """Seconds of numbered stages on the stream of the loop's own thread. No method blocks.

    A stage consists of intervals between pairs of events. A nested stage starts its own interval, so stage times add
    up.
    """

    def __init__(self, clock: CudaWaitClock) -> None:
        self._clock = clock
        self._stack: list[int] = []
        self._body: list[int] = []  # stages of the intervals since the last batch
        self._unread: deque[Key] = deque()
        self._noted: Counter[Key] = Counter()
        self._read: Counter[Key] = Counter()
        self._seconds: defaultdict[Key, float] = defaultdict(float)

    def enter(self, stage: int) -> None:
        """Enter a stage."""
        if self._stack:
            self._end_interval()
        self._stack.append(stage)
        self._clock.ask()

    def leave(self) -> None:
        """Leave the innermost stage."""
        self._end_interval()
        self._stack.pop()
        if self._stack:
            self._clock.ask()

    def end_body(self, kind: int) -> None:
        """Add the times that the device has reported. Intervals since the last batch belong to a batch of this kind."""
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

    def _end_interval(self) -> None:
        self._clock.got()
        self._body.append(self._stack[-1])
