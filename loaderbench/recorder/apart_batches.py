"""Keeps batches that are apart from all others, for a loop that takes no others: it takes one or two of each epoch."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from copy import deepcopy

import numpy as np

from loaderbench.recorder.batches import APART, MAX_ROWS, BatchLog, Numbers, Row, table_of

_ASKED, _ENDED, _GOT, _, _, _EPOCH = range(6)


class ApartBatches:
    """Adds up the batches of the kind `APART`.

    The wait for the first batch of an epoch is part of the epoch's start, so it is no data wait. A batch at which the
    loop left its epoch is in use until the next epoch begins.
    """

    def __init__(self) -> None:
        self._log, self._last_epoch = BatchLog(), -1
        self._waiting: list[tuple[Row, float]] = []  # with the wait, which is not limited by the duration of the batch
        self._begun = deque[tuple[int, float]](maxlen=2 * MAX_ROWS)  # the number of an epoch, and when it began

    def epoch_begins(self, number: int, at_s: float) -> None:
        """Note that an epoch begins."""
        self._begun.append((number, at_s))

    def add(self, rows: Sequence[Row], waits_s: Sequence[float]) -> None:
        """Add rows of this kind, in order. The waits are those of a device, or else of the host."""
        self._waiting += zip(rows, waits_s, strict=True)
        if len(self._waiting) > MAX_ROWS:
            done, self._waiting = self._waiting[:-1], self._waiting[-1:]  # the last may still be in use
            self._add_to(self._log, done)
            _, _, _, _, _, self._last_epoch = done[-1][0]

    @property
    def has_left(self) -> bool:
        """Whether the loop has left an epoch at one of the latest batches."""
        return any(row[_ENDED] < row[_GOT] for row, _ in list(self._waiting))

    def log(self) -> BatchLog:
        """These batches as counted ones; empty before the second epoch. Can be called from another thread."""
        found = deepcopy(self._log)
        if len(self._begun) > 1:
            self._add_to(found, list(self._waiting))
        return found

    def _add_to(self, log: BatchLog, rows: Sequence[tuple[Row, float]]) -> None:
        if not rows:
            return
        table, waits_s = table_of([row for row, _ in rows]), np.array([wait_s for _, wait_s in rows])
        is_first = np.diff(table[:, _EPOCH], prepend=self._last_epoch) > 0
        table[is_first, _ASKED], waits_s[is_first] = table[is_first, _GOT], 0.0
        is_left = table[:, _ENDED] < table[:, _GOT]
        table[:, _ENDED] = np.where(is_left, self._ends_s(table[:, _EPOCH]), table[:, _ENDED])
        is_known = ~np.isnan(table[:, _ENDED])
        table, waits_s = table[is_known], waits_s[is_known]
        log.add(table, APART, np.minimum(waits_s, table[:, _ENDED] - table[:, _ASKED]))

    def _ends_s(self, epochs: Numbers) -> Numbers:
        """When the epochs after these began; NaN if they did not."""
        begun_s = dict(list(self._begun))
        return np.array([begun_s.get(int(epoch) + 1, np.nan) for epoch in epochs])
