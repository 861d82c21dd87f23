"""95% confidence intervals over rounds, and ratios of rates as text. The unit is the process: one value is one trial.

A percentile bootstrap over three rounds covers far less than its nominal level, because it ends at the extremes of
three values. Student's t is used instead, on logarithms if values are rates or ratios, because machines slow down by
factors. Source: Student, The Probable Error of a Mean, Biometrika 1908.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist, mean, stdev, variance
from typing import TypeVar

from loaderbench.records import Interval, Trial

Key = TypeVar("Key")

LEVEL = 0.95

REPEATED_ROUNDS = 3
"""Rounds of a repeat, as few as a comparison needs. Their noise is part of what the repeat shows."""

FEWEST_PROCESSES = 2
"""Minimum processes in each run for a known variance between processes."""

WIDEST_LOG = math.log(1e20)
"""A bound of a rate or ratio lies at most this far from its estimate, on logarithms. Two values with nothing in common
would otherwise have bounds that no run file can hold.
"""

FEWEST_ROUNDS = 3
"""No winner is declared on fewer: the interval of two values is as wide as its t of 12.7."""


def rate_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Geometric mean of positive rates. A single value has no interval. Raises `ValueError` if empty."""
    middle, half = _mean_and_half([math.log(value) for value in values], level)
    return Interval(math.exp(middle), None, None) if half is None else interval_of_log(middle, half)


def interval_of_log(middle: float, half: float) -> Interval:
    """The interval of a rate or ratio from its logarithm and half the width of that logarithm's interval."""
    half = min(half, WIDEST_LOG)
    return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def share_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Mean of shares, with the interval clipped to 0 and 1. Raises `ValueError` if empty."""
    middle, half = _mean_and_half(values, level)
    return (
        Interval(middle, None, None)
        if half is None
        else Interval(middle, max(0.0, middle - half), min(1.0, middle + half))
    )


def mean_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Mean of values that can be negative, such as differences. Raises `ValueError` if empty."""
    middle, half = _mean_and_half(values, level)
    return Interval(middle, None, None) if half is None else Interval(middle, middle - half, middle + half)


def ratio_interval(
    changed: Mapping[Key, float], unchanged: Mapping[Key, float], level: float = LEVEL
) -> Interval | None:
    """The ratio of two configurations, paired by round; `None` if no round has both."""
    ratios = [value / unchanged[found] for found, value in changed.items() if found in unchanged]
    return rate_interval(ratios, level) if ratios else None


def at_another_time(ratio: Interval, rounds: int, sd_between_times: float) -> Interval:
    """Widen the interval over `rounds` to cover the same comparison at another time, over `REPEATED_ROUNDS`.

    The result is the prediction interval for the average of that many rounds, plus the standard deviation of the log
    ratio between two times. A repeat has noise of its own, so it often lies outside the interval of an average. Source:
    Hahn and Meeker, "Statistical Intervals".
    """
    if ratio.lo is None or ratio.hi is None:
        return ratio
    by_time = NormalDist().inv_cdf(0.5 + LEVEL / 2) * sd_between_times
    wider = math.sqrt(1 + rounds / REPEATED_ROUNDS)
    below, above = (math.hypot(wider * math.log(bound / ratio.est), by_time) for bound in (ratio.lo, ratio.hi))
    low, high = (math.exp(min(side, WIDEST_LOG)) for side in (below, above))
    return Interval(ratio.est, ratio.est / low, ratio.est * high)


def welch_interval(before: Sequence[float], after: Sequence[float], level: float = LEVEL) -> Interval:
    """The difference of two means, after - before, with its interval; no interval for fewer than two values."""
    difference = mean(after) - mean(before)
    if min(len(before), len(after)) < FEWEST_PROCESSES:
        return Interval(difference, None, None)
    squares = (variance(before) / len(before), variance(after) / len(after))
    total = sum(squares)
    if total == 0:
        return Interval(difference, difference, difference)
    part = squares[0] / total
    degrees = 1 / (part**2 / (len(before) - 1) + (1 - part) ** 2 / (len(after) - 1))
    half = student_t(degrees, level) * math.sqrt(total)
    return Interval(difference, difference - half, difference + half)


def excludes_one(ratio: Interval) -> bool:
    """Whether a ratio is significant: it has an interval, which excludes 1."""
    return ratio.lo is not None and ratio.hi is not None and not ratio.lo <= 1 <= ratio.hi


def is_below_one(ratio: Interval | None) -> bool:
    """Whether there is an interval entirely below 1."""
    return ratio is not None and excludes_one(ratio) and ratio.est < 1


def is_above_one(ratio: Interval | None) -> bool:
    """Whether there is an interval entirely above 1."""
    return ratio is not None and excludes_one(ratio) and ratio.est > 1


def _mean_and_half(values: Sequence[float], level: float = LEVEL) -> tuple[float, float | None]:
    if not values:
        raise ValueError("an interval needs at least one value")
    count, middle = len(values), mean(values)
    if count == 1:
        return middle, None
    return middle, student_t(count - 1, level) * math.sqrt(variance(values, middle) / count)


def student_t(degrees: float, level: float) -> float:
    """The value whose magnitude a two-sided Student's t exceeds with probability 1 - `level`."""
    from scipy.special import stdtrit  # takes half a second to import, and --help does not need it

    return float(stdtrit(degrees, 0.5 + level / 2))


LEAST_SD = 0.03
"""Of a log ratio between two times, in new processes, on a machine whose speed does not vary."""

SHARE_OF_SPEED_SD = 2 / 3
"""A log ratio varies between two times by this share of the standard deviation of the machine's log speed.

The estimate with the largest likelihood for 75 gains that `benchmarks/repeated_gains.py` repeated, by
`benchmarks/between_times.py`.
"""


def sd_between_times(trials: Iterable[Trial]) -> float:
    """The standard deviation of a log ratio between two times, beyond the noise of its rounds."""
    found = speed_sd(trials)
    return LEAST_SD if found is None else max(LEAST_SD, SHARE_OF_SPEED_SD * found)


def speed_sd(trials: Iterable[Trial]) -> float | None:
    """The standard deviation of the log time of the reference decode before trials of the sweep and of fixes.

    `None` with fewer than two.
    """
    log_times = [
        math.log(trial.reference_decode_before_s)
        for trial in trials
        if trial.role in ("sweep", "remedy") and trial.reference_decode_before_s
    ]
    return stdev(log_times) if len(log_times) > 1 else None


_SIGN, _EN_DASH = "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"


def times(ratio: Interval) -> str:
    """`1.51x (1.49-1.53x)` with a multiplication sign and an en dash; `1.51x` without an interval."""
    estimate, bounds = times_and_bounds(ratio)
    return f"{estimate} ({bounds})" if bounds else estimate


def percent_gain(ratio: Interval) -> str:
    """`+84% (76-93%)` with an en dash, `-15% (-20 to -9%)`; `+84%` without an interval."""
    estimate = f"{_percent(ratio.est, '+')}%"
    if ratio.lo is None or ratio.hi is None:
        return estimate
    low, high = (_percent(bound) for bound in (ratio.lo, ratio.hi))
    return f"{estimate} ({low}{' to ' if ratio.lo < 1 else _EN_DASH}{high}%)"


def _percent(ratio: float, sign: str = "") -> str:
    """A gain in percent, without decimals; never -0."""
    text = f"{(ratio - 1) * 100:{sign}.0f}"
    return f"{sign}0" if text == "-0" else text


def times_and_bounds(ratio: Interval) -> tuple[str, str]:
    """The two parts of `times`, with enough decimals that only 0 prints as 0, and only 1 as 1."""
    values = [value for value in (ratio.est, ratio.lo, ratio.hi) if value is not None and math.isfinite(value)]
    fewest = 2 if ratio.est < 2 else 1 if ratio.est < 100 else 0
    others = [value for value in values if value not in (0, 1)]
    places = next((n for n in range(fewest, 6) if all(round(v, n) not in (0, 1) for v in others)), 6)
    est, *bounds = (f"{value:,.{places}f}" for value in values)
    return f"{est}{_SIGN}", _EN_DASH.join(bounds) + _SIGN if len(bounds) == 2 else ""
