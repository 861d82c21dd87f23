"""Histogram of times in logarithmic bins, so memory does not grow with the length of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence

BINS = 256
BINS_PER_OCTAVE = 8  # bins are 9% wide; each keeps its mean, which limits the error of a quantile to half of that
FLOOR_S = 1e-7  # 256 bins reach from here to 430 s; longer times are counted in the last bin, with their sum


def bin_of(time_s: float) -> int:
    """The index of a time's bin."""
    if time_s <= FLOOR_S:
        return 0
    return min(BINS - 1, int(math.log2(time_s / FLOOR_S) * BINS_PER_OCTAVE))


class Histogram:
    """Counts and sums of times (in seconds) by bin."""

    __slots__ = ("counts", "max_s", "sums_s")

    def __init__(self, counts: Sequence[float] = (), sums_s: Sequence[float] = (), max_s: float = 0.0) -> None:
        self.counts = list(counts) or [0.0] * BINS
        self.sums_s = list(sums_s) or [0.0] * BINS
        self.max_s = max_s

    def add(self, time_s: float) -> None:
        """Count one time."""
        place = bin_of(time_s)
        self.counts[place] += 1
        self.sums_s[place] += time_s
        self.max_s = max(self.max_s, time_s)

    def quantile_s(self, share: float) -> float:
        """The mean of the bin that the quantile falls into; 0 when nothing was counted."""
        left = share * sum(self.counts)
        for count, sum_s in zip(self.counts, self.sums_s, strict=True):
            left -= count
            if count and left <= 0:
                return sum_s / count
        return 0.0

    def tail_share(self, times_median: float) -> float:
        """Share of total time that times beyond `times_median` medians took in excess of the median."""
        total_s, median_s = sum(self.sums_s), self.quantile_s(0.5)
        if total_s <= 0:
            return 0.0
        tail = bin_of(times_median * median_s) + 1
        return (sum(self.sums_s[tail:]) - median_s * sum(self.counts[tail:])) / total_s
