"""Confidence intervals that hold at every look, for a comparison that ends at the first conclusive look.

An ordinary 95% interval checked eight times misses the truth at one of the looks about one time in six. These repeated
confidence intervals hold at all planned looks together in 95% of cases, at whichever look it ends. Source: Jennison and
Turnbull 1989, "Interim Analyses: The Repeated Confidence Interval Approach", JRSS B 51. Each look has the same level,
as in Pocock 1977, "Group Sequential Methods in the Design and Analysis of Clinical Trials", Biometrika 64. The variance
is unknown, so Student's t is used at that level, as Pocock proposes there. The level follows from the looks by the
recursion of Armitage, McPherson and Rowe 1969, "Repeated Significance Tests on Accumulating Data", JRSS A 132.
`benchmarks/ab.py` measures how often a decision is wrong.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import Any

from loaderbench.statistics.intervals import LEVEL

FIRST_LOOK = 5
"""Pairs before the first look; with fewer, Student's t makes an interval several times as wide."""

MOST_LOOKS = 8
"""More looks would end a comparison only slightly sooner, and widen the interval at each look."""

_NODES = 101  # of a quadrature over the undecided values
_HIGHEST_Z = 8.0


def planned_looks(most: int) -> tuple[int, ...]:
    """The numbers of pairs at which to look, in a geometric sequence that ends at `most`."""
    if most <= FIRST_LOOK:
        return (max(1, most),)
    steps = min(MOST_LOOKS, most - FIRST_LOOK + 1) - 1
    looks = (round(FIRST_LOOK * (most / FIRST_LOOK) ** (number / steps)) for number in range(steps + 1))
    return tuple(dict.fromkeys(looks))


@cache
def level_at_looks(looks: tuple[int, ...], level: float = LEVEL) -> float:
    """The level of the interval at each look for all of them to hold together with `level`."""
    if len(looks) < 2:
        return level
    from scipy.optimize import brentq
    from scipy.special import ndtr

    z = brentq(lambda found: _coverage(looks, found) - level, 0.1, _HIGHEST_Z, xtol=1e-6)
    return float(2 * ndtr(z) - 1)


def _coverage(looks: tuple[int, ...], z: float) -> float:
    """The probability that a sum of standard normal values stays within `z` standard errors at every look."""
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    at = z * math.sqrt(looks[0]) * nodes
    mass = z * math.sqrt(looks[0]) * weights * _density(at, looks[0])
    for before, look in pairwise(looks):
        moved_nodes = z * math.sqrt(look) * nodes
        moved = _density(moved_nodes[:, None] - at[None, :], look - before)
        mass, at = z * math.sqrt(look) * weights * (moved @ mass), moved_nodes
    return float(mass.sum())


def _density(distance: Any, variance: float) -> Any:
    import numpy as np

    return np.exp(-np.square(distance) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
