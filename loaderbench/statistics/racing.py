"""Decides after each round which configurations can still be the fastest, by the ratios within rounds.

A configuration is out when its ratio to the leader excludes 1. Source of the method: racing (Maron and Moore, Hoeffding
Races, NIPS 1993), with a t-test over blocks in place of Hoeffding's bound, as in F-Race (Birattari et al., A Racing
Algorithm for Configuring Metaheuristics, GECCO 2002).

- Each look and each competitor takes its share of the error (Bonferroni), because the leader of many may lead by luck.
- A few ratios are a poor estimate of their own variance. It is moderated by the variance of all configurations, and
  before these have a second round, by `ASSUMED_SPREAD`. Source: Smyth, Linear Models and Empirical Bayes Methods for
  Assessing Differential Expression in Microarray Experiments, 2004. `benchmarks/strategies.py` measures how often it
  errs.
- Rounds need not contain the same configurations. Estimates are adjusted for the rounds that each was measured in, by
  least squares. Source: Yates, Incomplete Randomized Blocks, Annals of Eugenics 1936.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Generic, TypeVar

from loaderbench.records import Interval
from loaderbench.statistics.intervals import interval_of_log, student_t

Name = TypeVar("Name", bound=Hashable)
Round = TypeVar("Round", bound=Hashable)

ERROR = 0.05
"""Probability, over a complete race, that the fastest is dropped."""

ASSUMED_SPREAD = 0.15
"""Standard deviation of the logarithm of a ratio within a round, before there is a second round."""

ASSUMED_WEIGHT = 4
OWN_WEIGHT = 6
"""Degrees of freedom of the assumed spread vs that of all configurations, and of the latter vs each one's own."""

_MAX_PASSES, _TOLERANCE = 200, 1e-10


@dataclass(frozen=True, kw_only=True)
class RaceState(Generic[Name]):
    """The leader after some rounds, and the ratio of each other configuration to it, with the interval that decides.

    `estimates` are logarithms of rates.
    """

    leader: Name
    ratios: Mapping[Name, Interval]
    estimates: Mapping[Name, float]

    def is_out(self, name: Name) -> bool:
        """Whether the configuration is significantly slower than the leader."""
        ratio = self.ratios.get(name)
        return ratio is not None and ratio.hi is not None and ratio.hi < 1

    def behind(self, name: Name) -> float:
        """How far the configuration's estimate is below the leader's; infinite without a rate."""
        return self.estimates[self.leader] - self.estimates.get(name, -math.inf)


def standing(rates: Mapping[Name, Mapping[Round, float]], looks: int) -> RaceState[Name] | None:
    """Compare the configurations of a race with at most `looks` looks; `None` if none has a rate.

    `rates` are positive samples/s by configuration and round.
    """
    logs = _logs(rates)
    if not logs:
        return None
    of_names, rounds = _fitted(logs)
    leader = max(of_names, key=lambda name: of_names[name])
    residuals = (log - of_names[name] - rounds[at] for name, found in logs.items() for at, log in found.items())
    squares = sum(one**2 for one in residuals)
    degrees = max(0, sum(map(len, logs.values())) - len(logs) - len(rounds) + 1)
    of_all = (ASSUMED_WEIGHT * ASSUMED_SPREAD**2 + 2 * squares) / (ASSUMED_WEIGHT + degrees)
    tail = ERROR / (max(1, looks) * max(1, len(logs) - 1))
    ratios = {}
    for name, found in logs.items():
        differences = [log - logs[leader][at] for at, log in found.items() if at in logs[leader]]
        if name != leader and differences:
            ratios[name] = _moderated(differences, of_all, tail)
    return RaceState(leader=leader, ratios=ratios, estimates=of_names)


def is_tie(ratio: Interval, limit: float) -> bool:
    """Whether an interval lies entirely within this share of 1."""
    return ratio.lo is not None and ratio.hi is not None and 1 - limit <= ratio.lo and ratio.hi <= 1 / (1 - limit)


def estimates(rates: Mapping[Name, Mapping[Round, float]]) -> dict[Name, float]:
    """The logarithm of each rate, adjusted as if all had been measured in the same rounds; skips those without a rate.

    Only the differences are meaningful. If every round has every configuration, they are the differences of the means.
    """
    return _fitted(_logs(rates))[0]


def _logs(rates: Mapping[Name, Mapping[Round, float]]) -> dict[Name, dict[Round, float]]:
    return {name: {at: math.log(rate) for at, rate in found.items()} for name, found in rates.items() if found}


def _fitted(logs: Mapping[Name, Mapping[Round, float]]) -> tuple[dict[Name, float], dict[Round, float]]:
    """The effects of configurations and of rounds, each fitted to the residuals of the other, alternately."""
    in_round: dict[Round, list[tuple[Name, float]]] = defaultdict(list)
    for name, found in logs.items():
        for at, log in found.items():
            in_round[at].append((name, log))
    rounds = dict.fromkeys(in_round, 0.0)
    for _ in range(_MAX_PASSES):
        of_names = {name: fmean(log - rounds[at] for at, log in found.items()) for name, found in logs.items()}
        moved = {at: fmean(log - of_names[name] for name, log in held) for at, held in in_round.items()}
        if max((abs(moved[at] - rounds[at]) for at in rounds), default=0.0) < _TOLERANCE:
            break
        rounds = moved
    return of_names if logs else {}, rounds


def _moderated(differences: Sequence[float], of_all: float, tail: float) -> Interval:
    """The ratio with these logarithms; each side of its interval is exceeded with probability `tail`."""
    own = len(differences) - 1
    squares = OWN_WEIGHT * of_all + (own * variance(differences) if own else 0.0)
    middle, degrees = fmean(differences), OWN_WEIGHT + own
    half = student_t(degrees, 1 - 2 * tail) * math.sqrt(squares / degrees / len(differences))
    return interval_of_log(middle, half)
