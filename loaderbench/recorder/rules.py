"""When warm-up ends and when the steady state has been seen long enough. Pure functions over moments in seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MIN_BATCHES = 20  # of a steady state, unless that takes more than twice the seconds asked for
FEWEST_BATCHES = 5  # even then
FEWEST_BEFORE_SLICES = 2  # where the rate is measured in time slices afterwards
AGREEMENT = 0.2  # two windows agree when their rates differ by no more
WINDOW_S = 0.05  # shorter windows are noise


@dataclass(frozen=True)
class Rules:
    """How long to measure.

    `prefetch_batches` are ready or under way before the first is asked for, and no part of the steady state.
    Workers deliver in turn, so that `cycle` batches (one of each worker) are the least that says a rate. `fewest` are
    content where they take more than twice the seconds.
    """

    seconds: float
    prefetch_batches: int = 0
    cycle: int = 1
    fewest: int = FEWEST_BATCHES

    def warmed_up(self, moments_s: Sequence[float]) -> bool:
        """Say whether the queue has been turned over once and two consecutive windows agree, or time is up."""
        if len(moments_s) <= max(1, self.prefetch_batches):
            return False
        return moments_s[-1] - moments_s[0] > self.seconds or self._settled(moments_s)

    def closed(self, moments_s: Sequence[float], warmup: int) -> bool:
        """Say whether the steady state after `warmup` batches is long enough; it ends with a whole turn of workers."""
        batches, elapsed_s = len(moments_s) - warmup, moments_s[-1] - moments_s[warmup - 1]
        if batches % self.cycle or elapsed_s < self.seconds:
            return False
        return batches >= MIN_BATCHES or (elapsed_s >= 2 * self.seconds and batches >= self.fewest)

    def _settled(self, moments_s: Sequence[float]) -> bool:
        if len(moments_s) <= 2 * self.cycle:
            return False
        last_s = moments_s[-1] - moments_s[-1 - self.cycle]
        width = self.cycle * (math.ceil(WINDOW_S / last_s) if last_s > 0 else len(moments_s))
        if len(moments_s) <= 2 * width:
            return False
        now_s, before_s = (moments_s[-1 - skip] - moments_s[-1 - skip - width] for skip in (0, width))
        return before_s > 0 and abs(now_s / before_s - 1) <= AGREEMENT
