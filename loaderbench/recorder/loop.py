"""Takes the batches of a user's loop one by one and notes when each was asked for and when it came."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from loaderbench.histogram import Histogram
from loaderbench.recorder.batches import APART, STEADY, WARMUP, BatchLog, Row
from loaderbench.recorder.samples import sample_counter

ROWS = 256  # are kept before they are added up
LOOK_S = 0.25
FIRST_LOOK_S = 0.02  # doubled from look to look: an epoch may be short
LOOK_COST_SHARE = 0.005
_END = object()
_now_s = time.perf_counter


@dataclass(frozen=True)
class Watch:
    """What a recorder calls while it records: when warm-up is over, now and then, at an epoch's end, after the last."""

    steady: Callable[[], None] = lambda: None
    look: Callable[[], None] = lambda: None
    epoch_ended: Callable[[], None] = lambda: None
    full: Callable[[], None] = lambda: None


class LoopRecorder:
    """Records epochs, each begun with `epoch`.

    The first `warmup` batches and the first of every epoch are kept apart; after `steps` more, batches pass through.
    `first_batch_s` is of the first epoch; `boundaries` hold, for every other, the seconds of asking in vain, of `iter`
    and of its first batch.
    """

    def __init__(self, warmup: int, steps: int | None, watch: Watch | None = None) -> None:
        self.log, self.warmed, self.boundaries = BatchLog(), BatchLog(), Histogram()
        self.first_batch_s: float | None = None
        self.begun = 0
        self.full = False
        self.events: Any = None
        self._warmup, self._steps, self._watch = warmup, steps, watch or Watch()
        self._seen = self._steady = 0
        self._rows: list[Row] = []
        self._exposed_s: deque[float] = deque()
        self._ending_s: float | None = None
        self._look_at_s, self._pause_s = 0.0, FIRST_LOOK_S

    def epoch(self, begin: Callable[[], Iterator[Any]], batch_size: int | None = None) -> Iterator[Any]:
        """Yield what `begin()` yields, and record it."""
        began_s = _now_s()
        self._look_at_s, self._pause_s = 0.0, FIRST_LOOK_S
        batches = begin()
        self.begun += 1
        asked_s, kind, events = _now_s(), APART, self.events
        count: Callable[[Any], int] | None = None
        open_row: tuple[float, float] | None = None
        try:
            while not self.full:
                if events is not None:
                    events.ask()
                batch = next(batches, _END)
                got_s = _now_s()
                if batch is _END:
                    self._ending_s = got_s - asked_s
                    return
                if events is not None:
                    events.got()
                open_row = asked_s, got_s
                if count is None:
                    count = sample_counter(batch, batch_size)
                    self._note_boundary(got_s - began_s)
                samples = count(batch)
                yield batch
                next_s = _now_s()
                self._rows.append(Row(asked_s, next_s - asked_s, got_s - asked_s, samples, kind))
                open_row = None
                kind = self._next_kind(kind)
                if next_s >= self._look_at_s:
                    self._look(next_s)
                asked_s = _now_s()  # what the recorder did since belongs to nobody
        finally:
            if open_row is not None:  # the loop was left here
                self._rows.append(Row(open_row[0], 0.0, open_row[1] - open_row[0], 0, APART))
            self.add_up()
            self._watch.epoch_ended()
        yield from batches

    @property
    def bodies(self) -> int:
        """How often the loop's body ran since warm-up; at all, when it was over before."""
        return self._seen - self._warmup if self._seen > self._warmup else self._seen

    def add_up(self) -> None:
        """Add the rows to the logs; those whose wait a device has not told yet are kept."""
        rows = self._rows
        if self.events is not None:
            self._exposed_s.extend(self.events.take_s())
            ready = min(len(rows), len(self._exposed_s))
            told = [row._replace(wait_s=min(self._exposed_s.popleft(), row.period_s)) for row in rows[:ready]]
            rows, self._rows = told, rows[ready:]
        else:
            self._rows = []
        self.log.add([row for row in rows if row.kind == STEADY])
        self.warmed.add([row for row in rows if row.kind == WARMUP])

    def _note_boundary(self, took_s: float) -> None:
        if self.first_batch_s is None:
            self.first_batch_s = took_s
        elif self._ending_s is not None:
            self.boundaries.add(self._ending_s + took_s)
        self._ending_s = None

    def _next_kind(self, kind: int) -> int:
        """Count the batch that is done, and say what the next one is."""
        self._seen += 1
        self._steady += kind == STEADY
        if self._seen == self._warmup:
            self._watch.steady()
        if len(self._rows) >= ROWS:
            self.add_up()
        if self._steps is not None and self._steady >= self._steps:
            self.full = True
            self._watch.full()
        return STEADY if self._seen >= self._warmup else WARMUP

    def _look(self, at_s: float) -> None:
        """Let the others look around, the less often the longer that takes."""
        self._watch.look()
        took_s = _now_s() - at_s
        self._pause_s = min(2 * self._pause_s, LOOK_S)
        self._look_at_s = at_s + max(self._pause_s, took_s / LOOK_COST_SHARE)
