"""Formats a ratio of two rates, for conclusions and reports."""

from __future__ import annotations

import math

from loaderbench.records import Interval

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
