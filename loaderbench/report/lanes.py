"""The batches of one trial as lanes over time: which worker loaded them, which were ready, when the loop waited.

The report's section and the Chrome trace draw them. Times are seconds since the trial began.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, get_args

from loaderbench.records import BatchTimes, Trial
from loaderbench.records.words import stage_place
from loaderbench.report.view import View, representative, trials_of

UNDIVIDED = "sample"
COLLATE = "collate"
MOST_LANES = 24  # lanes of workers
MOST_BATCHES = 1_000  # batches of a trial; a recorder keeps fewer
_LONGEST_S = 1e9  # a later time, or one that is not finite, is invalid


@dataclass(frozen=True)
class Piece:
    """A period in the life of a batch: a stage, the wait for the batch, or the step after it."""

    what: str
    batch: BatchTimes
    began_s: float
    ended_s: float

    @property
    def seconds(self) -> float:
        """The length of the period."""
        return self.ended_s - self.began_s


@dataclass(frozen=True)
class Made:
    """A batch with a known worker, and when it was loaded."""

    batch: BatchTimes
    began_s: float
    collate_began_s: float
    ended_s: float

    @property
    def seconds(self) -> float:
        """The time to load the batch."""
        return self.ended_s - self.began_s

    def stages(self) -> Iterator[Piece]:
        """The stages in sequence, with the lengths of their sums over all samples.

        Each sample really passes all stages.
        """
        spent = {stage: s for stage, s in self.batch.stages_s.items() if stage != COLLATE and 0 < s < _LONGEST_S}
        whole_s, at_s = sum(spent.values()), self.began_s
        for stage in sorted(spent, key=lambda one: (stage_place(one), one)) if whole_s else (UNDIVIDED,):
            share = spent[stage] / whole_s if whole_s else 1.0
            until_s = min(at_s + share * (self.collate_began_s - self.began_s), self.collate_began_s)
            yield Piece(stage, self.batch, at_s, until_s)
            at_s = until_s
        yield Piece(COLLATE, self.batch, self.collate_began_s, self.ended_s)


@dataclass(frozen=True)
class Taken:
    """A batch that the loop requested and received, its data wait, and when the loop finished with it."""

    batch: BatchTimes
    asked_s: float
    got_s: float
    wait_s: float
    ended_s: float | None


@dataclass(frozen=True)
class Ready:
    """The number of ready batches from `at_s` on. `held_up` is true if the next batch in order is not among them."""

    at_s: float
    count: int
    held_up: bool


@dataclass(frozen=True)
class Lanes:
    """The batches of one trial, in order."""

    batches: Sequence[BatchTimes]

    @cached_property
    def makers(self) -> dict[int | None, list[Made]]:
        """The batches that each worker loaded, in order of time.

        The key `None` is the main process. Empty without tracing.
        """
        by_worker: dict[int | None, list[Made]] = {}
        for made in sorted(_made(self.batches), key=lambda one: one.began_s):
            by_worker.setdefault(made.batch.worker, []).append(made)
        return {
            worker: by_worker[worker]
            for worker in sorted(by_worker, key=lambda worker: -1 if worker is None else worker)
        }

    @cached_property
    def shown(self) -> dict[int | None, list[Made]]:
        """The workers with a lane. If there are too many workers, the one with the slowest batch is included."""
        slowest = self.slowest()
        chosen = [*self.makers][:MOST_LANES]
        if slowest is not None and slowest.batch.worker not in chosen:
            chosen[-1] = slowest.batch.worker
        return {worker: self.makers[worker] for worker in chosen}

    @cached_property
    def taken(self) -> list[Taken]:
        """The batches that the loop received, in order."""
        return list(_taken(self.batches))

    @cached_property
    def waits(self) -> list[Piece]:
        """The data waits: the part of each `next()` with nothing left to compute."""
        return [Piece("wait", one.batch, max(one.asked_s, one.got_s - one.wait_s), one.got_s) for one in self.taken]

    @cached_property
    def steps(self) -> list[Piece]:
        """From each batch to the wait for the next.

        At the end of an epoch, to the time when the loop finished with the batch.
        """
        following = {key_of(wait.batch): wait.began_s for wait in self.waits}
        pieces = []
        for one in self.taken:
            ended_s = following.get((one.batch.epoch, one.batch.batch + 1), one.ended_s)
            if ended_s is not None and ended_s > one.got_s:
                pieces.append(Piece("step", one.batch, one.got_s, ended_s))
        return pieces

    @cached_property
    def breaks(self) -> list[Piece]:
        """From the last step of an epoch to the request for the next epoch's first batch, when loops do other work."""
        return [
            Piece("between", after.batch, before.ended_s, after.asked_s)
            for before, after in pairwise(self.taken)
            if after.batch.epoch == before.batch.epoch + 1 and after.batch.batch == 0
            if before.ended_s is not None and before.ended_s < after.asked_s
        ]

    @cached_property
    def loop(self) -> tuple[Piece, ...]:
        """All that the loop does: it waits, computes, and does other work between epochs."""
        return (*self.waits, *self.steps, *self.breaks)

    @cached_property
    def calls(self) -> list[Piece]:
        """The calls of `next()` in the main process."""
        return [Piece("next", one.batch, one.asked_s, one.got_s) for one in self.taken]

    @cached_property
    def ready(self) -> list[Ready]:
        """The number of ready batches at each change; empty without workers."""
        made = [
            (m.ended_s, 1, key_of(m.batch)) for worker, own in self.makers.items() if worker is not None for m in own
        ]
        known = {key for _, _, key in made}
        taken = [(one.got_s, -1, key_of(one.batch)) for one in self.taken if key_of(one.batch) in known]
        ready, changes = set[tuple[int, int]](), []
        awaited = deque(key for _, _, key in taken)
        for at_s, change, key in sorted(made + taken):
            if change > 0:
                ready.add(key)
            else:
                ready.discard(key)
                awaited.popleft()
            changes.append(Ready(at_s, len(ready), bool(ready and awaited) and awaited[0] not in ready))
        return changes

    def slowest(self) -> Made | None:
        """The batch of the steady state that took the longest to load; `None` if no batch has a known worker."""
        known = [made for own in self.makers.values() for made in own if made.batch.steady]
        return max(known, key=lambda made: made.seconds, default=None)


def lanes_of(view: View) -> tuple[Trial, Lanes] | None:
    """The trial to draw, with its lanes: a profile's trial, or the median trial of the verdict's configuration."""
    batches = view.readings.batches
    if view.profile is not None:
        trials = [view.profile]
    else:
        trials = [] if view.shown is None else trials_of(view.run.configurations[view.shown], view.trials)
    trial = representative(trial for trial in trials if trial.id in batches)
    return None if trial is None else (trial, Lanes(batches[trial.id][:MOST_BATCHES]))


def _made(batches: Iterable[BatchTimes]) -> Iterator[Made]:
    for batch in batches:
        began_s, collate_began_s, made_s = batch.began_s, batch.collate_began_s, batch.made_s
        if began_s is None or collate_began_s is None or made_s is None:
            continue
        if -_LONGEST_S < began_s <= collate_began_s <= made_s < _LONGEST_S:
            yield Made(batch, began_s, collate_began_s, made_s)


def _taken(batches: Iterable[BatchTimes]) -> Iterator[Taken]:
    for batch in batches:
        asked_s, got_s, wait_s = batch.asked_s, batch.got_s, batch.wait_s
        if asked_s is None or got_s is None or wait_s is None:
            continue
        if -_LONGEST_S < asked_s <= got_s < _LONGEST_S and 0 <= wait_s < _LONGEST_S:
            ended_s = batch.ended_s if batch.ended_s is not None and got_s <= batch.ended_s < _LONGEST_S else None
            yield Taken(batch, asked_s, got_s, wait_s, ended_s)


def key_of(batch: BatchTimes) -> tuple[int, int]:
    """The epoch and the number of a batch, which identify it in a trial."""
    return batch.epoch, batch.batch


Kind = Literal["read", "decode", "transform", "collate", "other", "wait", "step", "between"]


def kind_of(what: str) -> Kind:
    """The color of a piece. Stages that a user named share the color of other dataset code."""
    kinds: tuple[Kind, ...] = get_args(Kind)
    return next((kind for kind in kinds if kind == what), "other")
