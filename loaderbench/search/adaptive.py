"""Rounds that drop configurations which can no longer be the best."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from loaderbench.plan import ROUND_SHARE, Plan
from loaderbench.ranks import process_count
from loaderbench.records import Config, Dropped, PlannedTrial, Trial
from loaderbench.search.grid import BytesOf, Grid
from loaderbench.statistics.configurations import PRACTICAL_TIE, rate_of
from loaderbench.statistics.intervals import FEWEST_ROUNDS, ratio_interval, times
from loaderbench.statistics.racing import RaceState, is_tie, standing

FAILED = "none of its trials completed"

_LOOKAHEAD = 64  # candidates in random order, of which the one with the rarest values is next


class Adaptive(Grid):
    """Successive elimination: a configuration excluded as best at 95% after a round gets no more rounds.

    Configurations with different `ranks` belong to different jobs, and each job has its own race.

    The baseline is in every round, because gains are relative to it. Its twin is in the rounds that the A/A test needs.
    The sweep ends when the best is separated from all others or tied with them. Source: Even-Dar, Mannor and Mansour,
    Action Elimination and Stopping Conditions for the Multi-Armed Bandit, JMLR 2006. `statistics/racing.py` names the
    source of the decision.

    If time is short, the fastest continue, and each round gets half of the time left (sequential halving: Karnin, Koren
    and Somekh, Almost Optimal Exploration in Multi-Armed Bandits, ICML 2013). The first round then measures a subset of
    the configurations, balanced over the values of each axis.

    Every decision follows from the trials of earlier rounds, so a resumed run makes the same decisions.
    """

    def __init__(self, plan: Plan, bytes_of: BytesOf = lambda _: None) -> None:
        super().__init__(plan, bytes_of)
        self._numbers = {_key(config): number for number, config in enumerate(plan.configurations)}
        self._baseline = self._numbers[_key(plan.baseline)]
        self._order = evenly(plan.configurations, self._baseline, plan.seed)

    def next_round(self, known: Sequence[Trial] = (), room: float = math.inf) -> Sequence[PlannedTrial]:
        """Return the next round, shuffled; empty if the best is known, or if no `room` (in trials) is left."""
        self._round += 1
        number, race = self._round, self._race(known)
        if number > self._plan.rounds or (number > self._plan.fewest_rounds and race.is_decided(number - 1)):
            return []
        with_twin = self._plan.with_twins and number <= FEWEST_ROUNDS
        field = self._field(race, number, room - with_twin)
        if not field:
            return []
        order = [self._plan.trial(self._plan.configurations[one], number) for one in {*field, self._baseline}]
        order += [self._plan.twin(number)] if with_twin else []
        random.Random(f"{self._plan.seed} {number}").shuffle(order)
        return order

    def _field(self, race: Race, number: int, room: float) -> list[int]:
        """The configurations of a round. A round followed by a later one gets no additional configurations."""
        left = self._order if number == 1 else race.left_after(number - 1)
        measured = [one for one in left if number in race.rounds[one]]
        if number < race.last:
            return measured
        share = ROUND_SHARE if number < self._plan.fewest_rounds else 1.0
        others = [one for one in left if number not in race.rounds[one]]
        for_baseline = self._baseline not in left
        fit = math.floor(min(len(left) + for_baseline, share * room)) - for_baseline
        return [*measured, *others[: max(0, fit)]]

    def dropped(self, known: Sequence[Trial], why_short: str = "") -> tuple[Dropped, ...]:
        """The configurations missing from the last round; `why_short` is the reason if no result excludes them."""
        race = self._race(known)
        missing = [
            one for one in range(len(self._order)) if one != self._baseline and race.last not in race.rounds[one]
        ]
        found = (self._why_dropped(race, one, why_short) for one in missing)
        return tuple(dropped for dropped in found if dropped.why)

    def _why_dropped(self, race: Race, one: int, why_short: str) -> Dropped:
        config, rounds = self._plan.configurations[one], len(race.rounds[one])
        at = race.standing(one, max(race.rounds[one], default=0))
        if at is not None and at.is_out(one):
            than, ratio = self._plan.configurations[at.leader], at.ratios[one]
            why = f"{times(ratio)} the rate of {self._plan.label(than)}"
            return Dropped(config=config, rounds=rounds, why=why, than=than, ratio=ratio)
        why = FAILED if rounds and not race.rates[one] else why_short
        return Dropped(config=config, rounds=rounds, why=why, not_measured=dict.fromkeys(("than", "ratio"), why))

    def _race(self, known: Iterable[Trial]) -> Race:
        """The race of this sweep, without rounds beyond the plan: gates ask for those of some configurations only."""
        last = self._plan.rounds
        planned = (trial for trial in known if trial.role == "sweep" and trial.round <= last)
        jobs = list(map(process_count, self._plan.configurations))
        return Race(((self._numbers[_key(trial.config)], trial) for trial in planned), last - 1, jobs)


class Race:
    """The trials of a sweep by configuration number, and the decisions after each round.

    `jobs` assigns a job to each configuration; only configurations of one job are compared.
    """

    def __init__(self, trials: Iterable[tuple[int, Trial]], looks: int, jobs: Sequence[int]) -> None:
        self.rates: dict[int, dict[int, float]] = defaultdict(dict)
        self.rounds: dict[int, set[int]] = defaultdict(set)
        self._pruned, self._looks, self._jobs = set[int](), looks, jobs
        for one, trial in trials:
            self.rounds[one].add(trial.round)
            if (rate := rate_of(trial)) is not None:
                self.rates[one][trial.round] = rate
            if trial.status == "unavailable":
                self._pruned.add(one)
        self.last = max((max(found) for found in self.rounds.values()), default=0)
        self._left: dict[int, tuple[list[int], dict[int, RaceState[int]]]] = {}

    def left_after(self, number: int) -> list[int]:
        """Configurations that can still be the best of their job after this round, fastest of each job first."""
        return self._after(number)[0]

    def standing(self, one: int, number: int) -> RaceState[int] | None:
        """The standing of a configuration's job after this round; `None` if nothing was measured."""
        return self._after(number)[1].get(one) if number else None

    def _after(self, number: int) -> tuple[list[int], dict[int, RaceState[int]]]:
        if number not in self._left:
            before = list(self.rounds) if number == 1 else self.left_after(number - 1)
            field = [one for one in before if number in self.rounds[one]]
            found = self._standings(field, number)
            left = [one for one in field if not (one in found and found[one].is_out(one))]
            left = [one for one in left if not self._fails(one, number)]
            left.sort(key=lambda one: found[one].behind(one) if one in found else math.inf)
            self._left[number] = left, found
        return self._left[number]

    def _standings(self, field: Sequence[int], number: int) -> dict[int, RaceState[int]]:
        """The standing of each configuration's job after this round; jobs without rates are left out."""
        jobs: dict[int, list[int]] = defaultdict(list)
        for one in field:
            jobs[self._jobs[one]].append(one)
        found: dict[int, RaceState[int]] = {}
        for members in jobs.values():
            state = standing({one: self._until(one, number) for one in members}, self._looks)
            found |= {} if state is None else dict.fromkeys(members, state)
        return found

    def is_decided(self, number: int) -> bool:
        """Whether the best of each job is separated from the others after this round, or tied with those left."""
        left, found = self._after(number)
        return all(self._is_best(leader, left, number) for leader in {state.leader for state in found.values()})

    def _is_best(self, leader: int, left: Sequence[int], number: int) -> bool:
        rest = [one for one in left if one != leader and self._jobs[one] == self._jobs[leader]]
        ratios = (ratio_interval(self._until(one, number), self._until(leader, number)) for one in rest)
        return all(ratio is not None and is_tie(ratio, PRACTICAL_TIE) for ratio in ratios)

    def _until(self, one: int, number: int) -> dict[int, float]:
        return {at: rate for at, rate in self.rates[one].items() if at <= number}

    def _fails(self, one: int, number: int) -> bool:
        """Whether no trial of a configuration completed after two attempts, or after it was pruned."""
        return not self._until(one, number) and (number > 1 or one in self._pruned)


def evenly(configurations: Sequence[Config], first: int, seed: int) -> list[int]:
    """Order all configurations, beginning with `first`, with every prefix balanced over each axis's values."""
    left = [number for number in range(len(configurations)) if number != first]
    random.Random(seed).shuffle(left)
    values = {axis: len({config.get(axis) for config in configurations}) for axis in configurations[first]}
    used = Counter(configurations[first].items())
    order = [first]

    def frequency(number: int) -> int:
        return sum(values[axis] * used[axis, value] for axis, value in configurations[number].items())

    while left:
        rarest = min(range(min(_LOOKAHEAD, len(left))), key=lambda place: frequency(left[place]))
        order.append(left.pop(rarest))
        used.update(configurations[order[-1]].items())
    return order


def _key(config: Config) -> tuple[object, ...]:
    return tuple(config.items())
