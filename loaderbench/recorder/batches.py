"""What is kept of a loop's batches: distributions and a thinned timeline. Memory does not grow with its length."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from loaderbench.histogram import BINS, BINS_PER_OCTAVE, FLOOR_S, Histogram
from loaderbench.recorder.stalls import Wait

MAX_POINTS = 1_000
MAX_ROWS = 4_096
APART, WARMUP, STEADY = range(3)

Row = tuple[float, float, float, int, int, int]
"""One batch: when it was asked for, when the loop was done with it, when it came, its samples, its kind, its epoch.

The kind: of the steady state, of the warm-up, or apart from both (the first of an epoch, the one a loop was left at).
"""

Numbers = np.ndarray[Any, np.dtype[np.float64]]


def table_of(rows: Sequence[Row]) -> Numbers:
    """Rows as an array of shape (rows, 6)."""
    return np.fromiter(chain.from_iterable(rows), np.float64, 6 * len(rows)).reshape(-1, 6)


def waits_of(table: Numbers, exposed_s: Sequence[float] | None = None) -> Numbers:
    """The wait of each row in seconds: what a device was exposed to, else the host's; no longer than the batch."""
    asked_s, ended_s, got_s = table[:, :3].T
    waits_s: Numbers = got_s - asked_s if exposed_s is None else np.array(exposed_s)
    shortest: Numbers = np.minimum(waits_s, ended_s - asked_s)
    return shortest


class Timeline:
    """The longest wait of every so many batches; when there are too many of them, of twice as many."""

    def __init__(self) -> None:
        self.batches_per_point = 1
        self.points: list[tuple[float, float]] = []
        self._open_at_s, self._open_s = np.empty(0), np.empty(0)

    def shown(self) -> list[tuple[float, float]]:
        """All points, with the one that is not full yet."""
        if not len(self._open_s):
            return self.points
        longest = int(self._open_s.argmax())
        return [*self.points, (float(self._open_at_s[longest]), float(self._open_s[longest]))]

    def add(self, at_s: Numbers, waits_s: Numbers) -> None:
        """Add moments and waits, in seconds."""
        at_s, waits_s = np.concatenate([self._open_at_s, at_s]), np.concatenate([self._open_s, waits_s])
        each = self.batches_per_point
        points = len(waits_s) // each
        places = waits_s[: points * each].reshape(points, each).argmax(axis=1) + np.arange(points) * each
        self.points += zip(at_s[places].tolist(), waits_s[places].tolist(), strict=True)
        self._open_at_s, self._open_s = at_s[points * each :], waits_s[points * each :]
        while len(self.points) >= 2 * MAX_POINTS:
            odd = self.points[-1:] if len(self.points) % 2 else []
            self.points = [max(pair, key=_wait) for pair in zip(*[iter(self.points)] * 2, strict=False)] + odd
            self.batches_per_point *= 2


class EpochRows:
    """The last rows of the epoch that is under way, with their numbers in it."""

    def __init__(self) -> None:
        self._rows: deque[Row] = deque(maxlen=MAX_ROWS)
        self._count = 0

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows in order."""
        self._rows.extend(rows)
        self._count += len(rows)

    def take(self) -> list[Wait]:
        """The waits of the steady state, once, with the number of their batch in the epoch."""
        first = self._count - len(self._rows)
        found = [Wait(number, row[0], row[2]) for number, row in enumerate(self._rows, first) if row[4] == STEADY]
        self._rows.clear()
        return found


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

    def add(self, table: Numbers, kind: int, waits_s: Numbers) -> None:
        """Add the rows of one kind of a table, with their waits."""
        kept = table[:, 4] == kind
        asked_s, ended_s, got_s, samples = table[kept, :4].T
        if not len(asked_s):
            return
        periods_s, shown_s = ended_s - asked_s, waits_s[kept]
        self.began_s = float(asked_s[0]) if self.began_s is None else self.began_s
        self.ended_s = float(ended_s[-1])
        self.batches += len(asked_s)
        self.samples += int(samples.sum())
        _add_all(self.waits, shown_s)
        _add_all(self.steps, periods_s - shown_s)
        self.timeline.add(got_s, shown_s)


def _add_all(histogram: Histogram, times_s: Numbers) -> None:
    """What `Histogram.add` does for each, at a tenth of the cost."""
    bins = np.clip(np.log2(np.maximum(times_s, FLOOR_S) / FLOOR_S) * BINS_PER_OCTAVE, 0, BINS - 1).astype(int)
    counts, sums_s = np.bincount(bins, minlength=BINS), np.bincount(bins, weights=times_s, minlength=BINS)
    histogram.counts = (np.asarray(histogram.counts) + counts).tolist()
    histogram.sums_s = (np.asarray(histogram.sums_s) + sums_s).tolist()
    histogram.max_s = max(histogram.max_s, float(times_s.max()))


def _wait(point: tuple[float, float]) -> float:
    return point[1]
