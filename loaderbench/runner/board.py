"""What a run and a trial tell each other in shared memory while the trial may be stopped at any moment."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

NUMBERS = 9  # how long it stood still, when its turns began, which note is valid, and two notes of three
_STILL, _BEGAN, _VALID, _NOTES, _EACH = 0, 1, 2, 3, 3


@dataclass(frozen=True)
class Note:
    """How many batches and samples were taken in the first `seconds` of the turns."""

    batches: int
    samples: int
    seconds: float


class Board:
    """Shared memory of `NUMBERS` doubles, and a clock that stands still while the trial does."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def now_s(self) -> float:
        """The monotonic clock, less what the trial stood still."""
        return time.monotonic() - float(self._memory[_STILL])

    def stood_still(self, seconds: float) -> None:
        """Put the clock back by so much; the trial is stopped now."""
        self._memory[_STILL] += seconds

    def begin(self) -> None:
        """The first turn begins."""
        self._memory[_BEGAN] = self.now_s()

    def note(self, batches: int, samples: int) -> None:
        """Write a note beside the one that is valid, and then make it valid: it is never seen half."""
        other = 1 - int(self._memory[_VALID])
        start = _NOTES + other * _EACH
        self._memory[start : start + _EACH] = (batches, samples, self.now_s() - self._memory[_BEGAN])
        self._memory[_VALID] = other

    def read(self) -> Note:
        """The last note."""
        start = _NOTES + int(self._memory[_VALID]) * _EACH
        batches, samples, seconds = self._memory[start : start + _EACH]
        return Note(int(batches), int(samples), seconds)
