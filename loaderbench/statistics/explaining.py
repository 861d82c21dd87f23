"""Determines which of two counts explains a time: the one that varies less per unit of time.

If requests take the time, their number per second is constant while their bytes vary; if bytes take the time, it is the
other way around. The test for two paired variances decides whether one varies less. Sources: Pitman, A Note on Normal
Correlation, Biometrika 1939; Morgan, A Test for the Significance of the Difference between the Two Variances in a
Sample from a Normal Bivariate Population, Biometrika 1939.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import correlation, fmean, pstdev

LEVEL = 0.9
FEWEST_PAIRS = 8
LEAST_VARIETY = 0.03
"""Minimum standard deviation of the differences, relative to the means; below it, the two counts are equivalent."""


def share_explained(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The share of a constant that `second` explains, by nonnegative least squares without an intercept.

    Both are paired sequences of positive values per unit of the constant. `None` if there are too few pairs, or if both
    are equally steady.
    """
    if len(first) < FEWEST_PAIRS or not any(first) or not any(second):
        return None
    ours, others = _relative(first), _relative(second)
    if not _variances_differ(ours, others):
        return None
    from scipy.optimize import nnls  # takes half a second to import, and --help does not need it

    (own, other), _ = nnls(list(zip(ours, others, strict=True)), [1.0] * len(first))
    return float(other / (own + other))


def _relative(values: Sequence[float]) -> list[float]:
    mean = fmean(values)
    return [value / mean for value in values]


def _variances_differ(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether the variances differ; equal variances imply uncorrelated sums and differences of the pairs."""
    sums = [one + other for one, other in zip(first, second, strict=True)]
    differences = [one - other for one, other in zip(first, second, strict=True)]
    if pstdev(differences) < LEAST_VARIETY or not pstdev(sums):
        return False
    from scipy.special import stdtrit

    degrees, found = len(first) - 2, correlation(sums, differences)
    unexplained = max(0.0, 1 - found**2)  # rounding can put a correlation beyond 1
    return abs(found) * math.sqrt(degrees) >= float(stdtrit(degrees, 0.5 + LEVEL / 2)) * math.sqrt(unexplained)
