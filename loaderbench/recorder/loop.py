"""Iterates over the batches of a user's loop and notes when each was requested and when it arrived."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

from loaderbench.recorder.apart_batches import ApartBatches
from loaderbench.recorder.batches import APART, STEADY, WARMUP, BatchLog, EpochRows, Row, table_of, waits_of
from loaderbench.recorder.epochs import Boundaries
from loaderbench.recorder.samples import count_samples, image_dtype, sample_counter
from loaderbench.recorder.stalls import Wait
from loaderbench.recorder.steps import RecentSteps, StepTimes
from loaderbench.recorder.windows import BatchWindows, FindMade
from loaderbench.records import BatchTimes
from loaderbench.tracing.block import SPANS

ROWS = SPANS // 2
"""Rows kept before they are added up. A worker must still remember the first of them at that time."""

LOOK_S = 0.5
FIRST_LOOK_S = 0.02  # doubled each time; short at first because epochs can be short
LOOK_COST_SHARE = 0.005
PAIR_GAP = 10.0
"""An epoch's second look waits this many times the duration of its first look. States are known only between two looks,
and the loop should hardly be delayed by looks in that time."""

WATCH_COST_SHARE = 0.02
"""An epoch costs the first look, and the callback at its end after a look. Some short epochs have no looks, which keeps
this cost below this share of time."""

LONGEST_UNWATCHED_S = 5.0
"""The longest time without a look, because looks also notice the end of recording."""

_now_s = time.perf_counter


class _LeftError(Exception):
    """The loop has begun another epoch without finishing this one."""


@dataclass(frozen=True)
class LoopCallbacks:
    """Callbacks of a recorder: after the warm-up, at intervals, at the end of an epoch, and after the last batch.

    `body` is called with the kind of each batch when the loop is done with it, once `LoopRecorder.marks` is set.
    `find_made` finds who made a batch; `None` if nothing is traced.
    """

    steady: Callable[[], None] = lambda: None
    body: Callable[[int], None] = lambda _: None
    look: Callable[[], None] = lambda: None
    epoch_ended: Callable[[], None] = lambda: None
    full: Callable[[], None] = lambda: None
    find_made: FindMade | None = None


class Epoch(chain[Any]):
    """The batches that `recorded` yields, and then the rest of the epoch, which is not recorded.

    The rest begins after the last recorded batch, or after an exception: torch's iterator continues after one. As a
    `chain` without a `__next__` of its own, it adds only nanoseconds to a batch.
    """

    __slots__ = ("__weakref__", "recorded")
    recorded: Any  # a generator

    @property
    def is_making(self) -> bool:
        """Whether a recorded batch is being made."""
        return bool(self.recorded.gi_running)

    @property
    def is_over(self) -> bool:
        """Whether no more batches are recorded."""
        return self.recorded.gi_frame is None

    def close(self) -> None:
        """Stop recording. Raises `ValueError` while a recorded batch is being made."""
        self.recorded.close()


class LoopRecorder:
    """Records epochs sequentially.

    The first `warmup` batches and the first of every epoch are kept apart. After `steps` more batches, the rest pass
    through unrecorded. `apart` has all batches until one is not kept apart. `first_batch_s` is that of the first epoch.
    For all others, `boundaries` adds up the seconds of the final request to the previous iterator (none if the loop
    left it), of `iter`, and of the first batch.
    `image_dtype` is that of the first batch that has tensors; empty without images. `between_s` are the total seconds
    between epochs.
    """

    def __init__(self, warmup: int, steps: int | None, callbacks: LoopCallbacks | None = None) -> None:
        self.log, self.warmed, self.apart = BatchLog(), BatchLog(), ApartBatches()
        self.boundaries = Boundaries()
        self.first_batch_s: float | None = None
        self.image_dtype: str | None = None
        self.begun = self.seen = 0
        self.between_s = self._began_s = self._ended_s = 0.0
        self.full = self.marks = False
        self.events: Any = None
        self._warmup, self._steps, self._callbacks = warmup, steps, callbacks or LoopCallbacks()
        self.windows = BatchWindows(self._callbacks.find_made)
        self._recent = RecentSteps()
        self._steady, self._is_warm = 0, False
        self._rows: list[Row] = []
        self._waiting: list[Row] = []
        self._exposed_s: deque[float] = deque()
        self._ending_s: float | None = None
        self._pauses_s = deque[float]()
        self._epoch_rows: EpochRows | None = None
        self._free_at_s = self._watch_at_s = 0.0
        self._restart_looks()

    def epoch(self, begin: Callable[[], Iterator[Any]], batch_size: int | None = None) -> Epoch:
        """Begin an epoch immediately. The iterator yields the batches of `begin()` and records them."""
        rest: list[Iterator[Any]] = []
        recorded = self._batches(begin, batch_size, rest)
        next(recorded)
        epoch = Epoch(recorded, chain.from_iterable(rest))
        epoch.recorded = recorded
        return epoch

    @staticmethod
    def leave(epoch: Epoch) -> None:
        """Stop recording an epoch in progress. Raises `ValueError` while it makes a batch."""
        epoch.recorded.throw(_LeftError())

    def _batches(
        self, begin: Callable[[], Iterator[Any]], batch_size: int | None, rest: list[Iterator[Any]]
    ) -> Generator[Any]:
        """Yield `None` once, and then batches. At the end, add the iterator over those that are left to `rest`.

        This code runs for every batch, with the CPU caches full of other data: it uses few names and objects, and calls
        only the clock. Bookkeeping is done every few batches, or when a call of `look` is due. No reference to a
        delivered batch is kept: if the loop drops the batch, its memory is freed during the step rather than during the
        next wait.
        """
        clock = _now_s
        asked_s = clock()
        source, events = _iterable(begin()), self.events
        del begin  # it refers to the loader
        batches = source if events is None else _WithEvents(source, events)
        began_took_s = clock() - asked_s
        epoch = self._count_epoch(asked_s)
        rows = self._rows
        add, count, kind, due, look_at_s = rows.append, len, APART, 1, 0.0
        left, got_s, samples, handed, was_left = due, 0.0, 0, list[Any](), False
        try:
            yield None
            asked_s = clock() - began_took_s  # the first batch's wait includes that time
            for batch in batches:
                got_s = clock()
                if kind == APART:
                    self._note_boundary(epoch, asked_s, got_s)
                    count = self._inspect(batch, batch_size)
                try:
                    samples = count(batch)
                except Exception:  # a batch with another structure
                    samples = count_samples(batch, batch_size)
                handed.append(batch)
                del batch
                yield handed.pop()
                now_s = clock()
                add((asked_s, now_s, got_s, samples, kind, epoch))
                asked_s, got_s, left = now_s, 0.0, left - 1
                if not left or now_s >= look_at_s:
                    kind, left, look_at_s = self._do_bookkeeping(kind, due - left, now_s)
                    due = left
                    if len(rows) >= ROWS:
                        self._add_up(rows)
                    if self.full:
                        break
                    asked_s = clock()  # excludes the recorder's own time
            else:
                self._ending_s = clock() - asked_s
                source = iter(())  # some iterators restart or block if they are asked again
        except _LeftError:
            was_left = True
        finally:
            rest.append(source)
            if got_s:  # the loop was left at this batch
                rows.append((asked_s, asked_s, got_s, samples, APART, epoch))
                left -= kind == APART  # its first batch counts as seen: a loop can leave every epoch there
            self._end_epoch(kind, due - left)
        if was_left:
            yield None

    def _count_epoch(self, began_s: float) -> int:
        """Count an epoch that begins, and return its number."""
        self.between_s += began_s - self._ended_s if self.begun else 0.0
        self.apart.epoch_begins(self.begun, began_s)
        self.begun += 1
        is_watched, usual_s = began_s >= self._watch_at_s, self._ended_s - self._began_s
        self._restart_looks(0.0 if is_watched else max(self._watch_at_s, began_s + usual_s))
        self._began_s = began_s
        return self.begun - 1

    def _inspect(self, batch: Any, batch_size: int | None) -> Callable[[Any], int]:
        """Note the data type of the first images, and return a counter of the samples in such a batch."""
        if self.image_dtype is None:
            self.image_dtype = image_dtype(batch)
        return sample_counter(batch, batch_size)

    def note_pause(self) -> None:
        """Note that the script starts another epoch on the recorded iterator. The current step does not count."""
        self._pauses_s.append(_now_s())

    def keep_waits(self) -> None:
        """Keep the waits of the epoch that begins now, for `take_waits`."""
        self._epoch_rows = EpochRows()

    def take_waits(self) -> list[Wait]:
        """Remove and return the epoch's steady-state waits that were added up; empty unless waits are kept."""
        return self._epoch_rows.take() if self._epoch_rows else []

    def steps(self) -> StepTimes | None:
        """The last steps that were added up; `None` with a device, because the host runs ahead of it."""
        return None if self.events is not None else self._recent.take()

    def batches(self) -> tuple[BatchTimes, ...]:
        """The batches that are kept, except those whose wait a device has not reported yet."""
        return self.windows.batches([*self._waiting, *self._rows])

    def add_up(self) -> None:
        """Add up the pending rows whose waits are known: a device may not have reported them all."""
        self._add_up(self._rows)

    def _add_up(self, rows: list[Row]) -> None:
        """Move rows to the logs, except those whose wait a device has not reported yet."""
        taken = [self._unless_paused(row) for row in rows] if self._pauses_s else rows.copy()
        exposed_s: list[float] | None = None
        rows.clear()
        if self._epoch_rows is not None:
            self._epoch_rows.add(taken)
        if self.events is not None:
            self._exposed_s.extend(self.events.take_s())
            taken = self._waiting + taken
            ready = min(len(taken), len(self._exposed_s))
            exposed_s = [self._exposed_s.popleft() for _ in range(ready)]
            taken, self._waiting = taken[:ready], taken[ready:]
        if taken and not sys.is_finalizing():
            table = table_of(taken)
            waits_s = waits_of(table, exposed_s)
            self.log.add(table, STEADY, waits_s)
            if self.seen <= self._warmup + len(taken):
                self.warmed.add(table, WARMUP, waits_s)
            if not (self.log.batches or self.warmed.batches):
                self.apart.add(taken, [row[2] - row[0] for row in taken] if exposed_s is None else exposed_s)
            self.windows.add(table, waits_s)
            self._recent.add(table)

    def _unless_paused(self, row: Row) -> Row:
        """The row, marked as `APART` if the loop paused during its step."""
        asked_s, ended_s, got_s, samples, _, epoch = row
        while self._pauses_s and self._pauses_s[0] < got_s:
            self._pauses_s.popleft()
        paused = bool(self._pauses_s) and self._pauses_s[0] <= ended_s
        return (asked_s, ended_s, got_s, samples, APART, epoch) if paused else row

    def _end_epoch(self, kind: int, done: int) -> None:
        """Add up an epoch that has ended or was left, after `done` more batches."""
        self._count_done(kind, done)
        self.add_up()
        self.windows.epoch_ended()
        if not sys.is_finalizing():  # nothing can be read then
            ended_s = _now_s()
            self._callbacks.epoch_ended()
            self._ended_s = _now_s()
            if self._looked_s:
                cost_s = self._looked_s + self._ended_s - ended_s
                self._watch_at_s = self._ended_s + min(cost_s / WATCH_COST_SHARE, LONGEST_UNWATCHED_S)

    def _note_boundary(self, epoch: int, asked_s: float, got_s: float) -> None:
        """Note that the first batch of an epoch that began at `asked_s` arrived at `got_s`."""
        took_s = got_s - asked_s
        if self.first_batch_s is None:
            self.first_batch_s = took_s
        else:
            made = self._callbacks.find_made(epoch, 0) if self._callbacks.find_made else None
            self.boundaries.add((self._ending_s or 0.0) + took_s, asked_s, got_s, made)
        self._ending_s = None

    def _do_bookkeeping(self, kind: int, done: int, ended_s: float) -> tuple[int, int, float]:
        """Do the bookkeeping after `done` batches.

        Returns the kind of the next batch, the number of batches until the next bookkeeping, and the time of the next
        look.
        """
        self._count_done(kind, done)
        if self.marks:
            self._callbacks.body(kind)
        if not self._is_warm and self.seen >= max(1, self._warmup):
            self._is_warm = True
            self._callbacks.steady()
            self._restart_looks()  # earlier looks are not part of the steady state
        if self._steps is not None and self._steady >= self._steps:
            self.full = True
            self._callbacks.full()
        if ended_s >= self._look_at_s:
            self._look(ended_s)
        kind = STEADY if self.seen >= self._warmup else WARMUP
        return kind, 1 if self.marks else self._until_due(kind), self._look_at_s

    def _count_done(self, kind: int, done: int) -> None:
        """Count batches that the loop has finished."""
        self.seen += done
        self._steady += done if kind == STEADY else 0

    def _until_due(self, kind: int) -> int:
        """Batches until the rows must be added up, or until the warm-up or `steps` end."""
        room = ROWS - len(self._rows) % ROWS
        if kind == WARMUP:
            return min(room, self._warmup - self.seen)
        return room if self._steps is None else min(room, self._steps - self._steady)

    def _restart_looks(self, at_s: float = 0.0) -> None:
        """Look at the end of a step from `at_s` on, as the first look of an epoch or of the steady state."""
        self._look_at_s, self._pause_s, self._looked_s = at_s, FIRST_LOOK_S, 0.0

    def _look(self, at_s: float) -> None:
        """Call `look`, less often the longer the call takes. The first two looks of an epoch are paid for together."""
        self._callbacks.look()
        took_s = _now_s() - at_s
        self._pause_s = min(2 * self._pause_s, LOOK_S)
        if self._looked_s:
            self._free_at_s = at_s + (self._looked_s + took_s) / LOOK_COST_SHARE
            self._look_at_s = at_s + max(self._pause_s, took_s / LOOK_COST_SHARE)
        else:
            self._looked_s = took_s
            self._look_at_s = max(at_s + max(self._pause_s, PAIR_GAP * took_s), self._free_at_s)


def _iterable(batches: Any) -> Iterator[Any]:
    """The same batches, for `iter`, which a user's iterator may lack: a `for` loop over the loader never calls it."""
    return batches if hasattr(type(batches), "__iter__") else map(next, repeat(batches))


class _WithEvents:
    """The same batches, with events on the device's stream before and after each request."""

    def __init__(self, batches: Iterator[Any], events: Any) -> None:
        self._batches, self._events = batches, events

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._events.ask()
        batch = next(self._batches)
        self._events.got()
        return batch
