"""What is kept of a loop's batches: distributions and a thinned timeline. Memory does not grow with its length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from loaderbench.histogram import BINS, BINS_PER_OCTAVE, FLOOR_S, Histogram

MAX_POINTS = 1_000


APART, WARMUP, STEADY = range(3)


class Row(NamedTuple):
    """One batch: when it was asked for, until the next was, and what of that was waiting.

    `kind`: of the steady state, of the warm-up, or apart from both (the first of an epoch, the one a loop was left at).
    """

    asked_s: float
    period_s: float
    wait_s: float
    samples: int
    kind: int


class Timeline:
    """The longest wait of every so many batches; when there are too many of them, of twice as many."""

    def __init__(self) -> None:
        self.batches_per_point = 1
        self.points: list[tuple[float, float]] = []
        self._open: list[tuple[float, float]] = []

    def shown(self) -> list[tuple[float, float]]:
        """All points, with the one that is not full yet."""
        return self.points + ([max(self._open, key=_wait)] if self._open else [])

    def add(self, points: Iterable[tuple[float, float]]) -> None:
        """Add moments and waits, in seconds."""
        for point in points:
            self._open.append(point)
            if len(self._open) == self.batches_per_point:
                self.points.append(max(self._open, key=_wait))
                self._open.clear()
                if len(self.points) == 2 * MAX_POINTS:
                    self.points = [max(pair, key=_wait) for pair in zip(*[iter(self.points)] * 2, strict=True)]
                    self.batches_per_point *= 2


class BatchLog:
    """Adds up rows. Times are in seconds of the performance counter."""

    def __init__(self) -> None:
        self.batches = self.samples = 0
        self.waits, self.steps, self.timeline = Histogram(), Histogram(), Timeline()
        self.began_s: float | None = None
        self.ended_s = 0.0

    @property
    def wall_s(self) -> float:
        """Wall time of all batches that were counted."""
        return sum(self.waits.sums_s) + sum(self.steps.sums_s)

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows."""
        if not rows:
            return
        self.began_s = rows[0].asked_s if self.began_s is None else self.began_s
        self.ended_s = rows[-1].asked_s + rows[-1].period_s
        self.batches += len(rows)
        self.samples += sum(row.samples for row in rows)
        _add_all(self.waits, [row.wait_s for row in rows])
        _add_all(self.steps, [max(0.0, row.period_s - row.wait_s) for row in rows])
        self.timeline.add((row.asked_s + row.wait_s, row.wait_s) for row in rows)


def _add_all(histogram: Histogram, times_s: list[float]) -> None:
    """What `Histogram.add` does for each, at a tenth of the cost."""
    import numpy as np

    times = np.asarray(times_s)
    bins = np.clip(np.log2(np.maximum(times, FLOOR_S) / FLOOR_S) * BINS_PER_OCTAVE, 0, BINS - 1).astype(int)
    for place, count in enumerate(np.bincount(bins).tolist()):
        if count:
            histogram.counts[place] += count
            histogram.sums_s[place] += float(times[bins == place].sum())
    histogram.max_s = max(histogram.max_s, float(times.max()))


def _wait(point: tuple[float, float]) -> float:
    return point[1]
