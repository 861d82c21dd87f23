"""The batches of one trial as lanes over time: who made them, which lay ready, when the loop waited or computed.

What the page's section and the Chrome trace draw. Moments are seconds since the trial began.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, get_args

from loaderbench.records import BatchTimes, Trial
from loaderbench.records.stages import stage_place
from loaderbench.report.view import View, representative, trials_of

UNDIVIDED = "sample"
COLLATE = "collate"
MOST_LANES = 24  # of workers
MOST_BATCHES = 1_000  # of a trial: a recorder keeps fewer
_LONGEST_S = 1e9  # a later time, or one that is not finite, is invalid


@dataclass(frozen=True)
class Piece:
    """From when to when something of a batch went on: a stage, the wait for it, the step after it."""

    what: str
    batch: BatchTimes
    began_s: float
    ended_s: float

    @property
    def seconds(self) -> float:
        """How long."""
        return self.ended_s - self.began_s


@dataclass(frozen=True)
class Made:
    """A batch whose maker is known: from when to when it was made."""

    batch: BatchTimes
    began_s: float
    collate_began_s: float
    ended_s: float

    @property
    def seconds(self) -> float:
        """How long making it took."""
        return self.ended_s - self.began_s

    def stages(self) -> Iterator[Piece]:
        """Its stages one after the other, although each sample goes through all: as long as their sums are."""
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
    """A batch that the loop asked for and got, its data wait, and when the loop was done with it."""

    batch: BatchTimes
    asked_s: float
    got_s: float
    wait_s: float
    ended_s: float | None


@dataclass(frozen=True)
class Ready:
    """How many finished batches are ready from `at_s` on; `held_up`: the next one in order is not among them."""

    at_s: float
    count: int
    held_up: bool


@dataclass(frozen=True)
class Lanes:
    """The batches of one trial, in order."""

    batches: Sequence[BatchTimes]

    @cached_property
    def makers(self) -> dict[int | None, list[Made]]:
        """What each worker made, in the order of time; `None` is the main process. Empty without tracing."""
        found: dict[int | None, list[Made]] = {}
        for made in sorted(_made(self.batches), key=lambda one: one.began_s):
            found.setdefault(made.batch.worker, []).append(made)
        return {worker: found[worker] for worker in sorted(found, key=lambda worker: -1 if worker is None else worker)}

    @cached_property
    def shown(self) -> dict[int | None, list[Made]]:
        """The makers that have a lane: of more workers than a screen has room for, that of the slowest batch too."""
        slowest = self.slowest()
        chosen = [*self.makers][:MOST_LANES]
        if slowest is not None and slowest.batch.worker not in chosen:
            chosen[-1] = slowest.batch.worker
        return {worker: self.makers[worker] for worker in chosen}

    @cached_property
    def taken(self) -> list[Taken]:
        """The batches that the loop took, in order."""
        return list(_taken(self.batches))

    @cached_property
    def waits(self) -> list[Piece]:
        """The data waits: what of each `next()` was spent while nothing was left to compute."""
        return [Piece("wait", one.batch, max(one.asked_s, one.got_s - one.wait_s), one.got_s) for one in self.taken]

    @cached_property
    def steps(self) -> list[Piece]:
        """From each batch until the wait for the next; at the end of an epoch until the loop was done with it."""
        following = {_key(wait.batch): wait.began_s for wait in self.waits}
        found = []
        for one in self.taken:
            ended_s = following.get((one.batch.epoch, one.batch.batch + 1), one.ended_s)
            if ended_s is not None and ended_s > one.got_s:
                found.append(Piece("step", one.batch, one.got_s, ended_s))
        return found

    @cached_property
    def breaks(self) -> list[Piece]:
        """From the last step of an epoch to asking for the next one's first batch: a loop does other things then."""
        return [
            Piece("between", after.batch, before.ended_s, after.asked_s)
            for before, after in pairwise(self.taken)
            if after.batch.epoch == before.batch.epoch + 1 and after.batch.batch == 0
            if before.ended_s is not None and before.ended_s < after.asked_s
        ]

    @cached_property
    def calls(self) -> list[Piece]:
        """The calls of `next()` in the main process."""
        return [Piece("next", one.batch, one.asked_s, one.got_s) for one in self.taken]

    @cached_property
    def ready(self) -> list[Ready]:
        """How many batches are ready, from one change to the next; empty without workers."""
        made = [(m.ended_s, 1, _key(m.batch)) for worker, own in self.makers.items() if worker is not None for m in own]
        known = {key for _, _, key in made}
        taken = [(one.got_s, -1, _key(one.batch)) for one in self.taken if _key(one.batch) in known]
        there, found = set[tuple[int, int]](), []
        awaited = deque(key for _, _, key in taken)
        for at_s, change, key in sorted(made + taken):
            if change > 0:
                there.add(key)
            else:
                there.discard(key)
                awaited.popleft()
            found.append(Ready(at_s, len(there), bool(there and awaited) and awaited[0] not in there))
        return found

    def slowest(self) -> Made | None:
        """The batch of the steady state that took longest to make; `None` where no maker is known."""
        known = [made for own in self.makers.values() for made in own if made.batch.steady]
        return max(known, key=lambda made: made.seconds, default=None)


def lanes_of(view: View) -> tuple[Trial, Lanes] | None:
    """Those of a profile's trial, or of the typical trial of the configuration that the verdict is about."""
    kept = view.readings.batches
    if view.profile is not None:
        trials = [view.profile]
    else:
        trials = [] if view.shown is None else trials_of(view.run.configurations[view.shown], view.trials)
    trial = representative(trial for trial in trials if trial.id in kept)
    return None if trial is None else (trial, Lanes(kept[trial.id][:MOST_BATCHES]))


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


def _key(batch: BatchTimes) -> tuple[int, int]:
    return batch.epoch, batch.batch


Kind = Literal["read", "decode", "transform", "collate", "other", "wait", "step", "between"]


def kind_of(what: str) -> Kind:
    """The color of a piece; stages that a user named share that of the dataset's own time."""
    kinds: tuple[Kind, ...] = get_args(Kind)
    return next((kind for kind in kinds if kind == what), "other")
