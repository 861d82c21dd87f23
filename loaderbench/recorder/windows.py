"""Keeps the first batches of a loop, those around the longest wait, and the last ones: enough to draw any run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from loaderbench.recorder.batches import STEADY, Numbers, Row, table_of
from loaderbench.recorder.measure import Steps
from loaderbench.recorder.stalls import MOST_AMISS, TOLERANCE_S
from loaderbench.records import BatchTimes
from loaderbench.tracing.made import Made

FIRST, LAST = 64, 128
AROUND = 64  # on each side of the longest wait
MOST_AHEAD = 64  # batches that were made but never taken

FindMade = Callable[[int, int], Made | None]
"""Returns who made a batch, and when, from its epoch and number; `None` if that is unknown or no longer stored."""

_ASKED, _ENDED, _GOT, _SAMPLES, _KIND, _EPOCH, _WAIT, _BATCH = range(8)


class BatchWindows:
    """Keeps selected batches from tables of rows, added in order and in the format of `batches.table_of`.

    `find_made` is `None` if nothing is traced. A worker remembers its last `SPANS` batches, so rows must be added
    before it has made that many more.
    """

    def __init__(self, find_made: FindMade | None = None) -> None:
        self._find_made = find_made
        self._first, self._around, self._last = (np.empty((0, 8)) for _ in range(3))
        self._missing = 0  # rows after the longest wait that have not arrived yet
        self._longest_s = -1.0
        self._epoch, self._next = -1, 0
        self._made: dict[tuple[int, int], Made] = {}

    def add(self, table: Numbers, waits_s: Numbers) -> None:
        """Add rows and their waits in seconds."""
        if not len(table):
            return
        rows = self._numbered(table, waits_s)
        recent = np.concatenate([self._last, rows])
        fresh = len(self._first) < FIRST or self._missing > 0
        self._first = np.concatenate([self._first, rows[: FIRST - len(self._first)]])
        self._around = np.concatenate([self._around, rows[: self._missing]])
        self._missing = max(0, self._missing - len(rows))
        if self._look_for_longer(recent) or fresh:
            self._remember([*self._first, *self._around])
        self._last = recent[-LAST:]

    def epoch_ended(self) -> None:
        """Look up who made the last batches: the next epoch can have new workers, which did not make them."""
        self._remember(self._last)

    def batches(self, waiting: Sequence[Row] = ()) -> tuple[BatchTimes, ...]:
        """The batches that are kept, in order; without workers if these cannot have made the batches.

        `waiting` are batches that were taken but not added yet.
        """
        rows = {_key(row): row for row in (*self._first, *self._around, *self._last)}
        made = self._look_up_made(self._made.copy(), self._last)  # a copy: another thread may call this to save
        found = [_times(rows[key], made.get(key)) for key in sorted(rows)]
        if sum(map(_is_amiss, found)) > MOST_AMISS * len(found):
            return tuple(_untraced(one) for one in found)
        return (*found, *self._not_taken([int(row[_EPOCH]) for row in waiting]))

    def _numbered(self, table: Numbers, waits_s: Numbers) -> Numbers:
        """The rows with their waits, and with their numbers in the epoch."""
        places = np.arange(len(table)) + self._next
        for start in np.flatnonzero(np.diff(table[:, _EPOCH], prepend=self._epoch)):
            places[start:] = np.arange(len(table) - start)
        self._epoch, self._next = int(table[-1, _EPOCH]), int(places[-1]) + 1
        return np.column_stack([table, waits_s, places])

    def _look_for_longer(self, rows: Numbers) -> bool:
        """Keep the batches around the longest steady-state wait. Returns whether a longer wait was found."""
        waits_s = np.where(rows[:, _KIND] == STEADY, rows[:, _WAIT], -1.0)
        place = int(waits_s.argmax())
        longer = bool(waits_s[place] > self._longest_s)
        if longer:
            self._longest_s = float(waits_s[place])
            self._around = rows[max(0, place - AROUND) : place + AROUND]
            self._missing = max(0, place + AROUND - len(rows))
        return longer

    def _remember(self, rows: Iterable[Any]) -> None:
        """Look up who made these batches, if unknown, and forget batches that are no longer kept."""
        kept = {_key(row) for row in (*self._first, *self._around, *self._last)}
        self._made = self._look_up_made({key: made for key, made in self._made.items() if key in kept}, rows)

    def _look_up_made(self, made: dict[tuple[int, int], Made], rows: Iterable[Any]) -> dict[tuple[int, int], Made]:
        """Add who made these rows, if unknown."""
        if self._find_made is None:
            return made
        for key in map(_key, rows):
            if key not in made and (found := self._find_made(*key)) is not None:
                made[key] = found
        return made

    def _not_taken(self, waiting: Sequence[int]) -> Iterator[BatchTimes]:
        """Batches that workers had made for the last epoch when the loop ended. `waiting` holds each row's epoch."""
        if self._find_made is None:
            return
        epoch = waiting[-1] if waiting else self._epoch
        first = waiting.count(epoch) + (self._next if epoch == self._epoch else 0)
        for batch in range(first, first + MOST_AHEAD):
            made = self._find_made(epoch, batch)
            if made is None:
                return
            yield _with_made(BatchTimes(epoch=epoch, batch=batch, samples=made.samples), made)


def batches_of(steps: Steps, warmup: int, find_made: FindMade) -> tuple[BatchTimes, ...]:
    """The batches that are kept of a trial; the first `warmup` are not part of the steady state.

    Workers' blocks are read once, at the end, rather than while the trial is measured. Batches that a worker made
    before its last `SPANS` have no worker.
    """
    windows = BatchWindows(find_made)
    windows.add(table_of(list(steps.rows(warmup))), np.array(steps.waits_s()))
    return windows.batches()


def _key(row: Any) -> tuple[int, int]:
    return int(row[_EPOCH]), int(row[_BATCH])


def _times(row: Any, made: Made | None) -> BatchTimes:
    asked_s, ended_s, got_s = (float(row[place]) for place in (_ASKED, _ENDED, _GOT))
    left = ended_s < got_s  # the loop was left at this batch
    taken = BatchTimes(
        epoch=int(row[_EPOCH]),
        batch=int(row[_BATCH]),
        samples=int(row[_SAMPLES]) or (made.samples if made else 0),
        steady=bool(row[_KIND] == STEADY),
        asked_s=asked_s,
        got_s=got_s,
        wait_s=got_s - asked_s if left else float(row[_WAIT]),
        ended_s=None if left else ended_s,
    )
    return taken if made is None else _with_made(taken, made)


def _with_made(batch: BatchTimes, made: Made) -> BatchTimes:
    return replace(
        batch,
        worker=made.worker,
        began_s=made.began_s,
        collate_began_s=made.collate_began_s,
        made_s=made.ended_s,
        stages_s=made.stages_s,
    )


def _is_amiss(batch: BatchTimes) -> bool:
    """Whether the batch arrived before it was made, which means that it was matched with the wrong batch."""
    return batch.made_s is not None and batch.got_s is not None and batch.made_s > batch.got_s + TOLERANCE_S


def _untraced(batch: BatchTimes) -> BatchTimes:
    return replace(batch, worker=None, began_s=None, collate_began_s=None, made_s=None, stages_s={})
