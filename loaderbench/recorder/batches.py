"""Stores a loop's batches as distributions and a thinned timeline, in memory that does not grow with the loop."""

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
"""One batch: when it was requested, when the loop was done with it, when it arrived, its samples, kind and epoch.

The kind is `STEADY`, `WARMUP`, or `APART` from both: the first batch of an epoch, or one at which the loop was left.
"""

Numbers = np.ndarray[Any, np.dtype[np.float64]]


def table_of(rows: Sequence[Row]) -> Numbers:
    """Rows as an array of shape (rows, 6)."""
    return np.fromiter(chain.from_iterable(rows), np.float64, 6 * len(rows)).reshape(-1, 6)


def waits_of(table: Numbers, exposed_s: Sequence[float] | None = None) -> Numbers:
    """The wait of each row in seconds, at most the batch's duration: a device's exposed wait, else the host's."""
    asked_s, ended_s, got_s = table[:, :3].T
    waits_s: Numbers = got_s - asked_s if exposed_s is None else np.array(exposed_s)
    shortest: Numbers = np.minimum(waits_s, ended_s - asked_s)
    return shortest


class Timeline:
    """The longest wait among every `batches_per_point` batches. That number doubles when there are too many points."""

    def __init__(self) -> None:
        self.batches_per_point = 1
        self.points: list[tuple[float, float]] = []
        self._open_at_s, self._open_s = np.empty(0), np.empty(0)

    def shown(self) -> list[tuple[float, float]]:
        """All points, including the last, incomplete one."""
        if not len(self._open_s):
            return self.points
        longest = int(self._open_s.argmax())
        return [*self.points, (float(self._open_at_s[longest]), float(self._open_s[longest]))]

    def add(self, at_s: Numbers, waits_s: Numbers) -> None:
        """Add waits and when they ended, in seconds."""
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
    """The last rows of the current epoch, numbered within it."""

    def __init__(self) -> None:
        self._rows: deque[Row] = deque(maxlen=MAX_ROWS)
        self._count = 0

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows in order."""
        self._rows.extend(rows)
        self._count += len(rows)

    def take(self) -> list[Wait]:
        """Remove and return the waits of the steady state, each with the number of its batch in the epoch."""
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
        """Wall time of all counted batches."""
        return sum(self.waits.sums_s) + sum(self.steps.sums_s)

    def add(self, table: Numbers, kind: int, waits_s: Numbers) -> None:
        """Add those rows of a table that are of one kind, with their waits."""
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
    """Equivalent to `Histogram.add` for each time, at a tenth of the cost."""
    bins = np.clip(np.log2(np.maximum(times_s, FLOOR_S) / FLOOR_S) * BINS_PER_OCTAVE, 0, BINS - 1).astype(int)
    counts, sums_s = np.bincount(bins, minlength=BINS), np.bincount(bins, weights=times_s, minlength=BINS)
    histogram.counts = (np.asarray(histogram.counts) + counts).tolist()
    histogram.sums_s = (np.asarray(histogram.sums_s) + sums_s).tolist()
    histogram.max_s = max(histogram.max_s, float(times_s.max()))


def _wait(point: tuple[float, float]) -> float:
    return point[1]
