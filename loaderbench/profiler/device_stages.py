"""What the stages of a loop's body cost on the device, by events: the host's time is that of queueing work, or waits.

A copy from pageable memory first waits for all that is queued, and its time would include that wait. A copy from pinned
memory returns at once, although nothing else runs on the device meanwhile.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loaderbench.consumers.cuda import CudaWaitClock

Key = tuple[int, int]
"""The kind of a batch, and the number of a stage."""


class DeviceStages:
    """Seconds of numbered stages on the stream that the loop's own thread computes on; nothing here ever blocks.

    Each stretch of a stage is a pair of events; a nested stage begins a stretch of its own, and so stages add up.
    """

    def __init__(self, clock: CudaWaitClock) -> None:
        self._clock = clock
        self._stack: list[int] = []
        self._body: list[int] = []  # stages of the stretches since the last batch
        self._unread: deque[Key] = deque()
        self._noted: Counter[Key] = Counter()
        self._read: Counter[Key] = Counter()
        self._seconds: defaultdict[Key, float] = defaultdict(float)

    def enter(self, stage: int) -> None:
        """Begin a stage."""
        if self._stack:
            self._end_stretch()
        self._stack.append(stage)
        self._clock.ask()

    def leave(self) -> None:
        """End the innermost stage."""
        self._end_stretch()
        self._stack.pop()
        if self._stack:
            self._clock.ask()

    def end_body(self, kind: int) -> None:
        """Add what the device has reported; the stretches since the last batch are of this kind."""
        found = [(kind, stage) for stage in self._body]
        self._body.clear()
        self._unread.extend(found)
        self._noted.update(found)
        for seconds in self._clock.take_s():
            key = self._unread.popleft()
            self._read[key] += 1
            self._seconds[key] += seconds

    def seconds(self, kind: int, stage: int) -> float | None:
        """Of all batches of this kind; those that the device has not reported yet count as long as the others."""
        key = kind, stage
        return self._seconds[key] * self._noted[key] / self._read[key] if self._read[key] else None

    def _end_stretch(self) -> None:
        self._clock.got()
        self._body.append(self._stack[-1])
