"""Decides which batches of a loop are traced or timed: all of them, or a random subset if they come fast."""

from __future__ import annotations

import math
import random

MAX_COST_SHARE = 0.005
"""Limit on the cost of tracing, as a share of the time from batch to batch. Above it, batches are skipped."""

EARLY_BATCHES = 32
"""The first batches of a loader, all traced regardless of cost because a loop can be short."""

SMOOTHED_OVER = 8  # batches in the moving average of the cost


class BatchChoice:
    """Decides for each batch whether to trace it, across all epochs of a loader.

    `max_cost_share` limits the cost of tracing, as a share of the time from one batch to the next.
    """

    def __init__(self, max_cost_share: float = MAX_COST_SHARE) -> None:
        self._max_cost_share = max_cost_share
        self._random = random.Random(0)  # private: the user's random state stays untouched
        self._early = EARLY_BATCHES
        self._cost_s = self._period_s = 0.0
        self._since_s, self._left_out, self._to_leave_out = 0.0, 0, 0

    def begin_epoch(self) -> None:
        """Start an epoch. The gap after the previous epoch's last batch does not count as time between batches."""
        self._since_s = 0.0

    @property
    def weight(self) -> int:
        """The number of batches that a batch traced now represents: itself, and those skipped since the last one."""
        return self._left_out + 1

    def leaves_out(self) -> bool:
        """Whether to skip the next batch."""
        if self._left_out >= self._to_leave_out:
            return False
        self._left_out += 1
        return True

    def traced(self, began_s: float, cost_s: float) -> None:
        """Record when a traced batch began (`began_s`) and what tracing it cost (`cost_s`)."""
        if self._since_s:
            self._period_s = (began_s - self._since_s) / (self._left_out + 1)
        self._since_s, self._left_out, self._to_leave_out = began_s, 0, 0
        self._cost_s += (cost_s - self._cost_s) / SMOOTHED_OVER if self._cost_s else cost_s
        if self._early > 0:
            self._early -= 1
        elif self._period_s > 0:
            self._to_leave_out = self._drawn(self._cost_s / (self._max_cost_share * self._period_s) - 1)

    def _drawn(self, mean: float) -> int:
        """A random integer around `mean`. A fixed one could trace periodic work in the loop always, or never."""
        whole = max(0, math.ceil(mean))
        return self._random.randint(whole // 2, whole + (whole + 1) // 2)
