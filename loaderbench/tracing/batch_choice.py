"""Which batches of a loop are traced or timed: all of them, or one of several that follow fast."""

from __future__ import annotations

import math
import random

MAX_COST_SHARE = 0.005
"""When tracing a sample's stages would cost more than this of the time from batch to batch, batches are left out."""

EARLY_BATCHES = 32
"""All of these are traced, whatever it costs: a loop may be short."""

SMOOTHED_OVER = 8  # batches that count for the mean cost


class BatchChoice:
    """Decides, batch by batch, over all epochs of a loader.

    `max_cost_share` is what tracing may cost, as a share of the time from one batch to the next.
    """

    def __init__(self, max_cost_share: float = MAX_COST_SHARE) -> None:
        self._max_cost_share = max_cost_share
        self._random = random.Random(0)  # its own: the user's generators stay untouched
        self._early = EARLY_BATCHES
        self._cost_s = self._period_s = 0.0
        self._since_s, self._left_out, self._to_leave_out = 0.0, 0, 0

    def begin_epoch(self) -> None:
        """Start an epoch; the time since the last batch of the one before is not counted."""
        self._since_s = 0.0

    @property
    def weight(self) -> int:
        """The number of batches that a batch traced now represents: itself, and those skipped since the last one."""
        return self._left_out + 1

    def leaves_out(self) -> bool:
        """Whether the next batch is left out."""
        if self._left_out >= self._to_leave_out:
            return False
        self._left_out += 1
        return True

    def traced(self, began_s: float, cost_s: float) -> None:
        """Note when a traced batch began, and what tracing it cost."""
        if self._since_s:
            self._period_s = (began_s - self._since_s) / (self._left_out + 1)
        self._since_s, self._left_out, self._to_leave_out = began_s, 0, 0
        self._cost_s += (cost_s - self._cost_s) / SMOOTHED_OVER if self._cost_s else cost_s
        if self._early > 0:
            self._early -= 1
        elif self._period_s > 0:
            self._to_leave_out = self._drawn(self._cost_s / (self._max_cost_share * self._period_s) - 1)

    def _drawn(self, mean: float) -> int:
        """A random number near the mean: what the loop does regularly is neither always traced nor always left out."""
        whole = max(0, math.ceil(mean))
        return self._random.randint(whole // 2, whole + (whole + 1) // 2)
