"""Which of two counts explains a time that both are said to cause: the one that is steadier per unit of it.

Where requests take the time, there are as many in every second, and their bytes vary; where bytes do, it is the other
way around. Whether one is steadier is decided by the test of two variances in pairs. Sources: Pitman, A Note on Normal
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
"""Of the standard deviation of the differences, relative to the means: below it both say the same."""


def share_explained(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The part of a constant that `second` explains, by least squares without an intercept and without negative parts.

    Both are positive values per unit of the constant, in pairs. `None` where they are too few, or equally steady.
    """
    if len(first) < FEWEST_PAIRS or not any(first) or not any(second):
        return None
    ours, others = _relative(first), _relative(second)
    if not _differ(ours, others):
        return None
    from scipy.optimize import nnls  # half a second to import, and not needed by --help

    (own, other), _ = nnls(list(zip(ours, others, strict=True)), [1.0] * len(first))
    return float(other / (own + other))


def _relative(values: Sequence[float]) -> list[float]:
    mean = fmean(values)
    return [value / mean for value in values]


def _differ(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether their variances do: where they are equal, the sums and the differences of the pairs are uncorrelated."""
    sums = [one + other for one, other in zip(first, second, strict=True)]
    differences = [one - other for one, other in zip(first, second, strict=True)]
    if pstdev(differences) < LEAST_VARIETY or not pstdev(sums):
        return False
    from scipy.special import stdtrit

    degrees, found = len(first) - 2, correlation(sums, differences)
    return abs(found) * math.sqrt(degrees) >= float(stdtrit(degrees, 0.5 + LEVEL / 2)) * math.sqrt(1 - found**2)
