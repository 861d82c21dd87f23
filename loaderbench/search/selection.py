"""Selects which fixes to try: each alone, then all that gain together; parts that add nothing are dropped."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from loaderbench.records import NOTHING_LEFT, Candidate, Config, Judgement, PlannedTrial, Trial, Tried
from loaderbench.statistics.judging import ENOUGH_PAIRS, FEWEST_PAIRS, MOST_PAIRS, is_lost, judge, wants_more

MOST_CANDIDATES = 6  # at the same time: each costs a trial in every round
MOST_TOGETHER = 4  # in one combination: each costs a trial without it in every round

Propose = Callable[[Config], "Sequence[Candidate] | None"]
"""The fixes that the cause of a configuration calls for, by the trials so far; `None` if the cause is unknown."""

NO_MORE = "no remaining fix gains more"
NO_TIME = "time for fixes used up"


class StepwiseSelection:
    """Tries candidates against the present configuration, and then combines those that gain.

    A round contains the unchanged configuration and each candidate once, in random order; at least five rounds, and
    more for candidates with a wide interval. A candidate that certainly gains, next to another, leaves after three: the
    combination of those that gain measures it more precisely. A round of the combination also contains it without each
    part, and the baseline; three rounds are enough if no interval is wide. Parts that add nothing to the others are
    dropped, most costly first.

    The remaining cause may call for other candidates: each is tried on top, and stays if it adds something. If nothing
    gains, the trials may point to another cause, and its candidates are tried in one step. At the end the result is
    compared with the baseline, unless this was already done. Source: stepwise selection, backward and forward
    (Efroymson 1960), with an interval for each addition.
    """

    def __init__(
        self, present: Config, baseline: Config, propose: Propose, *, seed: int, most: int = MOST_CANDIDATES
    ) -> None:
        self.config, self.tried, self.ended = present, list[Tried](), ""
        self._baseline, self._propose = baseline, propose
        self._random = random.Random(seed)
        self._round = self._in_step = 0
        self._final = False
        self._most = most
        self._together = list[Candidate]()
        self._seen = set[str]()
        called_for = self._called_for([])
        self._live, self._waiting = called_for[:most], called_for[most:]

    @property
    def candidates(self) -> Sequence[Candidate]:
        """The candidates of the current step."""
        return self._together or self._live

    @property
    def combines(self) -> bool:
        """Whether the current step measures a combination."""
        return bool(self._together)

    def next_round(self, done: Sequence[Trial], *, late: bool = False) -> Sequence[PlannedTrial]:
        """Return the next round, in its order; empty when everything has been tried. `late`: begin no further step."""
        while self._is_step_over(done, late):
            self._end_step(done, late)
        if self._final and self._is_compared(done, late):
            return []
        configs = self._configs(done)
        self._round, self._in_step = self._round + 1, self._in_step + 1
        planned = [self._planned(name, config) for name, config in configs]
        self._random.shuffle(planned)
        return planned

    def _configs(self, done: Sequence[Trial]) -> list[tuple[str, Config]]:
        """The configurations of the next round, by name."""
        baseline = ("baseline", self._baseline)
        if self._final:
            return [("present", self.config), baseline]
        if self._together:
            parts = [(f"without_{found.id}", self._without(found)) for found in self._together]
            return [("together", self._all()), *parts, baseline]
        return [("present", self.config), *((found.id, self._with(found)) for found in self._racing(done))]

    def _is_step_over(self, done: Sequence[Trial], late: bool) -> bool:
        if self._final:
            return False
        if self._together:
            return self._is_combination_decided(done, late)
        return self._is_settled(done) or (late and not 0 < self._in_step < FEWEST_PAIRS)

    def _end_step(self, done: Sequence[Trial], late: bool) -> None:
        if self._together:
            self._accept_parts(done, late)
        else:
            self._settle(done, late)

    def keep_what_fits(self, done: Sequence[Trial], trials_left: float) -> None:
        """Postpone the worst candidates of this step if there is no time for the fewest pairs of all."""
        if self._together or not 0 < self._in_step < FEWEST_PAIRS:
            return
        racing = self._racing(done)
        while len(racing) > 1 and (FEWEST_PAIRS - self._in_step) * (1 + len(racing)) > trials_left:
            worst = min(racing, key=lambda found: self._ratio_so_far(found, done))
            for left in (racing, self._live):
                left.remove(worst)
            self._waiting.insert(0, worst)
            self._note(worst)

    def _ratio_so_far(self, found: Candidate, done: Sequence[Trial]) -> float:
        """The candidate's ratio so far; 0 before its first pair."""
        ratio = self._judge(found, done).ratio
        return ratio.est if ratio else 0.0

    def finish(self, done: Sequence[Trial]) -> None:
        """Decide from the trials so far, because nothing more will be measured."""
        while not self._final:
            self._end_step(done, late=True)

    def _racing(self, done: Sequence[Trial]) -> list[Candidate]:
        """The candidates that need another pair: not yet shown to be slower, and not known precisely enough."""
        left = [found for found in self._live if not is_lost(self._with(found), self.config, done)]
        judged = [(found, self._judge(found, done)) for found in left]
        known = _sure_to_be_combined([found for found, how in judged if how.answer == "gain"], left)
        if self._in_step >= FEWEST_PAIRS:
            known += [found for found, how in judged if not wants_more(how)]
        return [found for found in left if found not in known]

    def _is_settled(self, done: Sequence[Trial]) -> bool:
        return self._in_step >= MOST_PAIRS or not self._racing(done)

    def _settle(self, done: Sequence[Trial], late: bool) -> None:
        """Record the results of the step, and begin the next one."""
        judged = [(candidate, self._judge(candidate, done)) for candidate in self._live]
        for candidate, how in judged:
            if how.pairs or how.answer == "failed":
                self._note(candidate)
        gains = sorted((pair for pair in judged if pair[1].answer == "gain"), key=_least_costly)
        hopeful = [found for found, how in judged if how.answer == "undecided" and how.ratio and how.ratio.est > 1]
        self._waiting = [candidate for candidate, _ in gains] + hopeful * (len(judged) > 1) + self._waiting
        together = _compatible(gains)
        if len(together) > 1:
            self._together, self._live, self._in_step = together, [], 0
            return
        if gains:
            self._accept(together[0], self.config)
        self._try_remaining(late, NOTHING_LEFT if gains else NO_MORE)

    def _try_remaining(self, late: bool, ended: str) -> None:
        """Try the remaining candidates on top of the accepted ones, unless it is late or none remain."""
        accepted = {tried.id for tried in self.tried if tried.accepted}
        left = [candidate for candidate in self._waiting if candidate.id not in accepted]
        at_a_time = 1 if accepted or left else self._most
        left = self._called_for(left) if accepted or not left else left
        self._live, self._waiting, self._in_step = left[:at_a_time], left[at_a_time:], 0
        if late or not left:
            self.ended = NO_TIME if late else ended
            self._live, self._final = [], True

    def _is_combination_decided(self, done: Sequence[Trial], late: bool) -> bool:
        """Whether the combination, and the gain that each part adds, need no more pairs."""
        judged = [self._judge_part(found, done) for found in self._together]
        if self._in_step >= MOST_PAIRS or (self._in_step and not any(how.pairs for how in judged)):
            return True
        known = not any(map(wants_more, judged))
        return _are_enough(self._in_step, known=known, late=late or known)  # if known, as few pairs as out of time

    def _accept_parts(self, done: Sequence[Trial], late: bool) -> None:
        """Accept the parts of the combination that add something.

        If several add nothing, only the costliest is dropped, since without it the others may add something. If it is
        too late to measure that, the others stay.
        """
        judged = [(found, self._judge_part(found, done)) for found in self._together]
        enough = all(how.pairs >= ENOUGH_PAIRS for _, how in judged)
        first = self._together[0] if enough or not late else max(self._together, key=lambda one: self._gain(one, done))
        without = {found.id: self._without(found) for found in self._together}
        for found, _ in judged if enough else ():
            self._note(found, without[found.id])
        weak = sorted((pair for pair in judged if pair[1].answer != "gain"), key=_least_costly)
        added = [found for found, how in judged if how.answer == "gain"] if enough else []
        if enough and len(weak) > 1 and len(judged) > 2:
            if not late:
                self._drop(weak[-1][0])
                return
            added = [found for found in self._together if found is not weak[-1][0]]
        if enough:
            self._waiting = [one for one in self._waiting if one.id not in without]
        self._together = []
        if not added:  # each is as good as all, the combination failed, or there was no time for it
            self._accept(first, self.config)
        for found in added:
            self._accept(found, without[found.id])
        self._try_remaining(late, NOTHING_LEFT)

    def _drop(self, found: Candidate) -> None:
        """Measure the combination without a candidate, and do not try the candidate again."""
        self._together = [one for one in self._together if one is not found]
        self._waiting = [one for one in self._waiting if one is not found]
        self._in_step = 0

    def _all(self) -> Config:
        return {**self.config, **_changes(self._together)}

    def _without(self, found: Candidate) -> Config:
        return {**self.config, **_changes(one for one in self._together if one is not found)}

    def _judge_part(self, found: Candidate, done: Sequence[Trial]) -> Judgement:
        """Judge the gain that a candidate adds to the others of the combination."""
        return judge(self._all(), self._without(found), done)

    def _called_for(self, left: Sequence[Candidate]) -> list[Candidate]:
        """Of the `left` candidates, those that the cause still calls for, plus new ones that it calls for now."""
        found = self._propose(self.config)
        if found is None:
            return list(left)
        ids = {candidate.id for candidate in found}
        new = [candidate for candidate in found if candidate.id not in self._seen]
        self._seen |= {candidate.id for candidate in new}
        new.sort(key=lambda one: (not one.first, -(one.estimate or 0.0)))
        return [candidate for candidate in left if candidate.id in ids] + new

    def _accept(self, candidate: Candidate, against: Config) -> None:
        """Add a candidate to the configuration; a fix that it overrides is no longer accepted."""
        self.tried = [
            replace(tried, accepted=True)
            if tried.id == candidate.id and tried.against == against
            else _unless_overridden(tried, candidate)
            for tried in self.tried
        ]
        self.config = self._with(candidate)

    def _note(self, candidate: Candidate, against: Config | None = None) -> None:
        """Record once that a candidate was tried, by default on the present configuration, even if it was postponed."""
        against = self.config if against is None else against
        if not any(tried.id == candidate.id and tried.against == against for tried in self.tried):
            self.tried.append(
                Tried(
                    id=candidate.id,
                    change=candidate.change,
                    against=against,
                    accepted=False,
                    estimate=candidate.estimate,
                )
            )

    def _with(self, candidate: Candidate) -> Config:
        return {**self.config, **candidate.change}

    def _judge(self, candidate: Candidate, done: Sequence[Trial]) -> Judgement:
        return judge(self._with(candidate), self.config, done)

    def _gain(self, candidate: Candidate, done: Sequence[Trial]) -> float:
        """The estimated gain of a candidate alone; 0 if it has none."""
        ratio = self._judge(candidate, done).ratio
        return ratio.est if ratio else 0.0

    def _is_compared(self, done: Sequence[Trial], late: bool) -> bool:
        """Whether the result needs no more pairs with the baseline."""
        if self.config == self._baseline or not any(tried.accepted for tried in self.tried):
            return True
        found = judge(self.config, self._baseline, done)
        if self._in_step >= (MOST_PAIRS if found.pairs else ENOUGH_PAIRS):
            return True
        return _are_enough(found.pairs, known=not wants_more(found), late=late)

    def _planned(self, name: str, config: Config) -> PlannedTrial:
        return PlannedTrial(id=f"v{self._round:02d}-{name}", role="remedy", config=config, round=self._round)


def _are_enough(pairs: int, *, known: bool, late: bool) -> bool:
    """Whether a final comparison can end: late, with fewer pairs if known, or with enough pairs if not."""
    if late and pairs < FEWEST_PAIRS:
        return known and pairs >= ENOUGH_PAIRS
    return pairs >= FEWEST_PAIRS and (known or late)


def _sure_to_be_combined(gains: Sequence[Candidate], left: Sequence[Candidate]) -> list[Candidate]:
    """Those of several gaining candidates that no other candidate in the step could replace in a combination."""
    if len(gains) < 2:
        return []
    changed = Counter(argument for candidate in left for argument in candidate.change)
    return [gain for gain in gains if all(changed[argument] == 1 for argument in gain.change)]


def _compatible(gains: Sequence[tuple[Candidate, Judgement]]) -> list[Candidate]:
    """The gaining candidates that can be combined: larger gains are chosen first; the least costly are listed first."""
    chosen: list[tuple[Candidate, Judgement]] = []
    for pair in sorted(gains, key=lambda pair: -(pair[1].ratio.est if pair[1].ratio else 0.0)):
        if len(chosen) < MOST_TOGETHER and not any(pair[0].change.keys() & one.change.keys() for one, _ in chosen):
            chosen.append(pair)
    return [candidate for candidate, _ in sorted(chosen, key=_least_costly)]


def _changes(of: Iterable[Candidate]) -> Config:
    return {name: value for one in of for name, value in one.change.items()}


def _least_costly(found: tuple[Candidate, Judgement]) -> tuple[int, float]:
    candidate, how = found
    return candidate.effort, -(how.ratio.est if how.ratio else 0.0)


def _unless_overridden(tried: Tried, candidate: Candidate) -> Tried:
    changes = tried.change.items()
    overridden = tried.accepted and any(candidate.change.get(name, value) != value for name, value in changes)
    return replace(tried, accepted=False) if overridden else tried
