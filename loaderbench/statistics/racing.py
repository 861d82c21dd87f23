"""Which configurations may still be the fastest: a decision after each round, by the ratios within rounds.

A configuration is out when its ratio to the leader excludes 1. Source of the method: racing (Maron and Moore, Hoeffding
Races, NIPS 1993), with a t-test over blocks in place of Hoeffding's bound, as in F-Race (Birattari et al., A Racing
Algorithm for Configuring Metaheuristics, GECCO 2002).

- Each look and each competitor takes its share of the error (Bonferroni), because a leader of many may lead by luck.
- Few ratios say little of their own spread. It is moderated by the spread of all configurations, and before these have
  a second round, by `ASSUMED_SPREAD`. Source: Smyth, Linear Models and Empirical Bayes Methods for Assessing
  Differential Expression in Microarray Experiments, 2004. `benchmarks/strategies.py` measures how often it errs.
- Rounds need not hold the same configurations. Estimates are adjusted for the rounds that each was measured in, by
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
from loaderbench.statistics.intervals import student_t

Name = TypeVar("Name", bound=Hashable)
Round = TypeVar("Round", bound=Hashable)

ERROR = 0.05
"""Of a whole race: how often the fastest may be out."""

ASSUMED_SPREAD = 0.15
"""Standard deviation of the logarithm of a ratio within a round, before there is a second round."""

ASSUMED_WEIGHT = 4
OWN_WEIGHT = 6
"""Degrees of freedom of the assumed spread next to that of all, and of the latter next to a configuration's own."""

_MOST_PASSES, _STILL = 200, 1e-10


@dataclass(frozen=True, kw_only=True)
class RaceState(Generic[Name]):
    """The leader after some rounds, and the ratio of each other to it, with the interval that decides.

    `estimates` are logarithms of rates.
    """

    leader: Name
    ratios: Mapping[Name, Interval]
    estimates: Mapping[Name, float]

    def is_out(self, name: Name) -> bool:
        """Whether it is slower than the leader by more than chance explains."""
        ratio = self.ratios.get(name)
        return ratio is not None and ratio.hi is not None and ratio.hi < 1

    def behind(self, name: Name) -> float:
        """How far its estimate is below the leader's; infinite for one without a rate."""
        return self.estimates[self.leader] - self.estimates.get(name, -math.inf)


def standing(rates: Mapping[Name, Mapping[Round, float]], looks: int) -> RaceState[Name] | None:
    """Compare those in the race, which has at most `looks` looks; `None` where none has a rate.

    `rates` are samples/s above 0 by configuration and round.
    """
    logs = _logs(rates)
    if not logs:
        return None
    of_names, rounds = _fitted(logs)
    leader = max(of_names, key=lambda name: of_names[name])
    left = (log - of_names[name] - rounds[at] for name, found in logs.items() for at, log in found.items())
    squares = sum(one**2 for one in left)
    degrees = max(0, sum(map(len, logs.values())) - len(logs) - len(rounds) + 1)
    of_all = (ASSUMED_WEIGHT * ASSUMED_SPREAD**2 + 2 * squares) / (ASSUMED_WEIGHT + degrees)
    tail = ERROR / (max(1, looks) * max(1, len(logs) - 1))
    ratios = {}
    for name, found in logs.items():
        apart = [log - logs[leader][at] for at, log in found.items() if at in logs[leader]]
        if name != leader and apart:
            ratios[name] = _moderated(apart, of_all, tail)
    return RaceState(leader=leader, ratios=ratios, estimates=of_names)


def is_tie(ratio: Interval, limit: float) -> bool:
    """Whether all of an interval lies within this share of 1."""
    return ratio.lo is not None and ratio.hi is not None and 1 - limit <= ratio.lo and ratio.hi <= 1 / (1 - limit)


def estimates(rates: Mapping[Name, Mapping[Round, float]]) -> dict[Name, float]:
    """The logarithm of each rate, as if all had been measured in the same rounds; of those that have a rate.

    Their differences count. Where all rounds hold all of them, these are those of the means.
    """
    return _fitted(_logs(rates))[0]


def _logs(rates: Mapping[Name, Mapping[Round, float]]) -> dict[Name, dict[Round, float]]:
    return {name: {at: math.log(rate) for at, rate in found.items()} for name, found in rates.items() if found}


def _fitted(logs: Mapping[Name, Mapping[Round, float]]) -> tuple[dict[Name, float], dict[Round, float]]:
    """The effects of configurations and of rounds, each fitted in turn to what the other leaves."""
    in_round: dict[Round, list[tuple[Name, float]]] = defaultdict(list)
    for name, found in logs.items():
        for at, log in found.items():
            in_round[at].append((name, log))
    rounds = dict.fromkeys(in_round, 0.0)
    for _ in range(_MOST_PASSES):
        of_names = {name: fmean(log - rounds[at] for at, log in found.items()) for name, found in logs.items()}
        moved = {at: fmean(log - of_names[name] for name, log in held) for at, held in in_round.items()}
        if max((abs(moved[at] - rounds[at]) for at in rounds), default=0.0) < _STILL:
            break
        rounds = moved
    return of_names if logs else {}, rounds


def _moderated(apart: Sequence[float], of_all: float, tail: float) -> Interval:
    """The ratio with these logarithms, each side of its interval exceeded with the probability `tail`."""
    own = len(apart) - 1
    squares = OWN_WEIGHT * of_all + (own * variance(apart) if own else 0.0)
    middle, degrees = fmean(apart), OWN_WEIGHT + own
    half = student_t(degrees, 1 - 2 * tail) * math.sqrt(squares / degrees / len(apart))
    return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half))
