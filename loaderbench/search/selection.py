"""Which remedies are tried on top of which: each alone, then together as far as each adds something."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from loaderbench.records import Candidate, Config, Judgement, PlannedTrial, Trial, Tried
from loaderbench.statistics.judging import ENOUGH_PAIRS, FEWEST_PAIRS, MOST_PAIRS, is_lost, judge, wants_more

MOST_CANDIDATES = 6  # beside each other: each costs a trial in every round

Propose = Callable[[Config], "Sequence[Candidate] | None"]
"""The remedies that the cause of a configuration calls for by the trials so far; `None` where the cause is unknown."""

NO_MORE = "no remaining fix gains more"
NOTHING_LEFT = "no more fixes for the remaining cause"
NO_TIME = "time for fixes used up"


class ForwardSelection:
    """Tries candidates against the present configuration, and then those that gain on top of one another.

    A round holds the unchanged configuration and each candidate once, in an order of its own; five rounds at least,
    more for those whose interval is wide. Of those that gain the least costly goes into the configuration first, then
    the next is tried on top of it and stays if it adds something, and so on; the cause that is left may call for
    others. At the end the result is measured beside the baseline. Source: forward selection (Efroymson 1960), with an
    interval for each addition.
    """

    def __init__(
        self, present: Config, baseline: Config, propose: Propose, *, seed: int, most: int = MOST_CANDIDATES
    ) -> None:
        self.config, self.tried, self.ended = present, list[Tried](), ""
        self._baseline, self._propose = baseline, propose
        self._random = random.Random(seed)
        self._round = self._in_step = 0
        self._final = False
        called_for = sorted(propose(present) or (), key=lambda found: (not found.first, -(found.estimate or 0.0)))
        self._live, self._waiting = list(called_for[:most]), list(called_for[most:])
        self._seen = {candidate.id for candidate in called_for}

    @property
    def candidates(self) -> Sequence[Candidate]:
        """Those that are tried now."""
        return self._live

    def next_round(self, done: Sequence[Trial], *, late: bool = False) -> Sequence[PlannedTrial]:
        """Return the next round, in its order; empty when all is tried. `late`: begin no further step."""
        while not self._final and (self._is_settled(done) or (late and not 0 < self._in_step < FEWEST_PAIRS)):
            self._settle(done, late)
        if self._final and self._is_compared(done, late):
            return []
        changed = [] if self._final else [(found.id, self._with(found)) for found in self._racing(done)]
        self._round, self._in_step = self._round + 1, self._in_step + 1
        unchanged = [("baseline", self._baseline)] if self._final else []
        planned = [self._planned(name, config) for name, config in [("present", self.config), *unchanged, *changed]]
        self._random.shuffle(planned)
        return planned

    def keep_what_fits(self, done: Sequence[Trial], trials_left: float) -> None:
        """Put off candidates of this step that leave no time for the fewest pairs of the others, the worst first."""
        if not 0 < self._in_step < FEWEST_PAIRS:
            return
        racing = self._racing(done)
        while len(racing) > 1 and (FEWEST_PAIRS - self._in_step) * (1 + len(racing)) > trials_left:
            worst = min(racing, key=lambda found: self._promise(found, done))
            for left in (racing, self._live):
                left.remove(worst)
            self._waiting.insert(0, worst)
            self._note(worst)

    def _promise(self, found: Candidate, done: Sequence[Trial]) -> float:
        """Its ratio so far; 0 before its first pair."""
        ratio = self._judge(found, done).ratio
        return ratio.est if ratio else 0.0

    def finish(self, done: Sequence[Trial]) -> None:
        """Decide with what there is: nothing more will be measured."""
        if not self._final:
            self._settle(done, late=True)

    def _racing(self, done: Sequence[Trial]) -> list[Candidate]:
        """Those that need another pair: not shown to be slower by a few, and not known well enough."""
        left = [found for found in self._live if not is_lost(self._with(found), self.config, done)]
        if self._in_step < FEWEST_PAIRS:
            return left
        return [found for found in left if wants_more(self._judge(found, done))]

    def _is_settled(self, done: Sequence[Trial]) -> bool:
        return self._in_step >= MOST_PAIRS or not self._racing(done)

    def _settle(self, done: Sequence[Trial], late: bool) -> None:
        """Note what the step has shown, and go on with what is to be tried on top of it."""
        judged = [(candidate, self._judge(candidate, done)) for candidate in self._live]
        for candidate, how in judged:
            if how.pairs or how.answer == "failed":
                self._note(candidate)
        gains = sorted((pair for pair in judged if pair[1].answer == "gain"), key=_least_costly)
        hopeful = [found for found, how in judged if how.answer == "undecided" and how.ratio and how.ratio.est > 1]
        left = [candidate for candidate, _ in gains[1:]] + hopeful * (len(judged) > 1)
        if gains:
            self._accept(gains[0][0])
            left = self._called_for([*left, *self._waiting])
        else:
            left += self._waiting
        self._live, self._waiting, self._in_step = left[:1], left[1:], 0
        if late or not left:
            self.ended = NO_TIME if late else NOTHING_LEFT if gains else NO_MORE
            self._live, self._final = [], True

    def _called_for(self, left: Sequence[Candidate]) -> list[Candidate]:
        """Of those left, the ones that the cause still calls for, and others that it calls for now."""
        found = self._propose(self.config)
        if found is None:
            return list(left)
        ids = {candidate.id for candidate in found}
        new = [candidate for candidate in found if candidate.id not in self._seen]
        self._seen |= {candidate.id for candidate in new}
        return [candidate for candidate in left if candidate.id in ids] + new

    def _accept(self, candidate: Candidate) -> None:
        """Put it into the configuration; what it overrides is part of that no longer."""
        self.tried = [
            replace(tried, accepted=True)
            if tried.id == candidate.id and tried.against == self.config
            else _unless_overridden(tried, candidate)
            for tried in self.tried
        ]
        self.config = self._with(candidate)

    def _note(self, candidate: Candidate) -> None:
        """Note that it was tried on the present configuration: once, also where it was put off and tried again."""
        if not any(tried.id == candidate.id and tried.against == self.config for tried in self.tried):
            self.tried.append(
                Tried(
                    id=candidate.id,
                    change=candidate.change,
                    against=self.config,
                    accepted=False,
                    estimate=candidate.estimate,
                )
            )

    def _with(self, candidate: Candidate) -> Config:
        return {**self.config, **candidate.change}

    def _judge(self, candidate: Candidate, done: Sequence[Trial]) -> Judgement:
        return judge(self._with(candidate), self.config, done)

    def _is_compared(self, done: Sequence[Trial], late: bool) -> bool:
        """Whether the result needs no more pairs with the baseline."""
        if self.config == self._baseline or not any(tried.accepted for tried in self.tried):
            return True
        found = judge(self.config, self._baseline, done)
        if self._in_step >= (MOST_PAIRS if found.pairs else ENOUGH_PAIRS):
            return True
        known = not wants_more(found)
        if late and found.pairs < FEWEST_PAIRS:
            return known and found.pairs >= ENOUGH_PAIRS
        return found.pairs >= FEWEST_PAIRS and (known or late)

    def _planned(self, name: str, config: Config) -> PlannedTrial:
        return PlannedTrial(id=f"v{self._round:02d}-{name}", role="remedy", config=config, round=self._round)


def _least_costly(found: tuple[Candidate, Judgement]) -> tuple[int, float]:
    candidate, how = found
    return candidate.effort, -(how.ratio.est if how.ratio else 0.0)


def _unless_overridden(tried: Tried, candidate: Candidate) -> Tried:
    changes = tried.change.items()
    overridden = tried.accepted and any(candidate.change.get(name, value) != value for name, value in changes)
    return replace(tried, accepted=False) if overridden else tried
