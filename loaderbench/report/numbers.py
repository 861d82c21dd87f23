"""Formats of numbers and units: three significant digits, an en dash between bounds, never 0 for a missing value.

Numbers below 10,000 keep all digits before the decimal point: 1,234 samples/s reads better than 1,230.
"""

from __future__ import annotations

import math

from loaderbench.records import Interval, moment
from loaderbench.report.model import Value
from loaderbench.report.words import NAME_LIMIT, plain, sentence
from loaderbench.statistics.intervals import times_and_bounds

NOT_MEASURED = "not measured"
NOT_RUN = "not run"
ONE_ROUND = "n = 1"
NONE_SEEN = "not significant"
_LONG = 1e15  # numbers from here on are written with an exponent
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
MINUS, EN_DASH, TIMES = "\u2212", "\u2013", "\u00d7"


def number(value: float, digits: int = 3) -> str:
    """`value` with `digits` significant digits and a comma between thousands: 0.0123, 9.84, 812, 1,234, 12,300."""
    if abs(value) >= _LONG:
        return f"{value:.{digits - 1}e}".replace("-", MINUS)
    return _rounded(value, _places(value, digits))


def _rounded(value: float, places: int) -> str:
    return f"{round(value, places) + 0.0:,.{max(places, 0)}f}".replace("-", MINUS)


def _places(value: float, digits: int) -> int:
    """Decimal places for `digits` significant digits, after rounding (99.96 is 100, not 100.0)."""
    if value == 0:
        return 0
    places = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = abs(round(value, places))
    places = digits - 1 - math.floor(math.log10(rounded)) if rounded else places
    return max(places, 0) if abs(value) < 10_000 else places


def bounds(est: float, lo: float, hi: float, digits: int = 3) -> tuple[str, str]:
    """The estimate and `lo-hi`, rounded alike, with one more digit if rounding would hide the interval."""
    places = _places_of_interval(est, lo, hi, digits)
    shown = [_rounded(x, places) for x in (est, lo, hi)]
    return shown[0], f"{shown[1]}{' to ' if lo < 0 else EN_DASH}{shown[2]}"


def _places_of_interval(est: float, lo: float, hi: float, digits: int) -> int:
    """Decimal places for the estimate's significant digits, or one digit more if only that shows the interval.

    An interval around 0 is much wider than its estimate, so its larger bound sets them.
    """
    places = _places(max(abs(lo), abs(hi)) if lo < 0 < hi else est, digits)
    if lo >= hi or _rounded(lo, places) != _rounded(hi, places):
        return places
    finer = _places(est, digits + 1) if est else _places(max(abs(lo), abs(hi)), 1)
    return places if _rounded(lo, finer) == _rounded(hi, finer) else finer


def missing(reason: str | None = None) -> Value:
    """`not measured: reason`. For `not run`, there is no reason to add."""
    if not reason or reason == NOT_RUN:
        said_alone = reason or NOT_MEASURED
        return Value(said_alone, main=said_alone, missing=True)
    why = sentence(reason)
    return Value(f"{NOT_MEASURED}: {why.text}", why.title, main=NOT_MEASURED, detail=why.text, missing=True)


def quantity(value: float | None, unit: str = "", reason: str | None = None, digits: int = 3) -> Value:
    """One number with its unit."""
    if value is None or not math.isfinite(value):
        return missing(reason)
    text = with_unit(number(value, digits), unit)
    return Value(text, main=text, sort=value)


def interval(value: Interval | None, reason: str | None = None, unit: str = "", digits: int = 3) -> Value:
    """`812 (790-835)` with an en dash, or `812 (n = 1)` if only one round was measured."""
    if value is None or not math.isfinite(value.est):
        return missing(reason)
    if value.lo is None or value.hi is None or not math.isfinite(value.lo + value.hi):
        main, detail = number(value.est, digits), ONE_ROUND
    else:
        main, between = bounds(value.est, value.lo, value.hi, digits)
        detail = with_unit(between, unit)
    main = with_unit(main, unit)
    return Value(f"{main} ({detail})", main=main, detail=detail, sort=value.est)


def times(ratio: Interval | None, reason: str | None = None) -> Value:
    """`1.51x (1.49-1.53x)`, as in conclusions, or `1.51x (n = 1)` if only one round was measured."""
    if ratio is None or not math.isfinite(ratio.est):
        return missing(reason)
    main, bounded = times_and_bounds(ratio)
    detail = bounded or ONE_ROUND
    return Value(f"{main} ({detail})", main=main, detail=detail, sort=ratio.est)


def difference(value: Interval | None, unit: str, reason: str | None = None) -> Value:
    """`4.2 ms (3.1-5.3 ms)`, or `not significant (-0.8 to 1.2 ms)` if it includes 0. The bounds set the decimals."""
    if value is None or not math.isfinite(value.est):
        return missing(reason)
    if value.lo is None or value.hi is None:
        return interval(value, unit=unit)
    places = _places(max(abs(value.lo), abs(value.hi)), 2)
    est, lo, hi = (_rounded(x, places) for x in (value.est, value.lo, value.hi))
    main = with_unit(est, unit) if not value.lo <= 0 <= value.hi else NONE_SEEN
    detail = with_unit(f"{lo}{' to ' if value.lo < 0 else EN_DASH}{hi}", unit)
    return Value(f"{main} ({detail})", main=main, detail=detail, sort=value.est)


def share(value: Interval | float | None, reason: str | None = None) -> Value:
    """A share of 0 to 1 as a percentage: `41% (38-44%)`, or `41%` without an interval."""
    if isinstance(value, Interval):
        return interval(value.scaled(100), reason, "%", digits=2)
    return percent(None if value is None else value * 100, reason)


def percent(value: float | None, reason: str | None = None) -> Value:
    """A number that is already a percentage."""
    if value is None or not math.isfinite(value):
        return missing(reason)
    return quantity(value, "%", digits=3 if abs(value) >= 99.5 else 2)


def with_unit(text: str, unit: str) -> str:
    """A number and its unit with a space between, except before a percent or a multiplication sign."""
    return f"{text}{'' if unit in ('', '%', TIMES) else ' '}{unit}"


def memory(value: float | None, reason: str | None = None) -> Value:
    """Bytes as GiB, or as MiB, KiB or bytes below one unit; 0 as MiB."""
    if value is None:
        return missing(reason)
    least = next((one for one in _UNITS if abs(value) >= one[0]), (1, "bytes"))
    size, unit = least if value else _UNITS[1]
    text = f"{number(value / size)} {unit}"
    return Value(text, main=text, sort=value)


def memory_rate(value: float | None, reason: str | None = None) -> Value:
    """Bytes per second, as GiB/s or MiB/s."""
    size = memory(value, reason)
    return size if size.missing else Value(f"{size.text}/s", main=f"{size.main}/s", sort=value)


def duration(seconds: float | None, reason: str | None = None) -> Value:
    """Seconds in a suitable unit."""
    if seconds is None or not math.isfinite(seconds):
        return missing(reason)
    text = _duration(seconds)
    return Value(text, main=text, sort=seconds)


def _duration(seconds: float) -> str:
    if 0 < abs(seconds) < 1e-3:
        return f"{number(seconds * 1e6)} \u00b5s"
    if 0 < abs(seconds) < 1:
        return f"{number(seconds * 1e3)} ms"
    if abs(seconds) < 120:
        return f"{number(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def gain(est: float, lo: float | None, hi: float | None, over: str = "") -> Value:
    """A ratio as a gain: `+25% vs baseline (21-29%)`, or `4.1x vs baseline (3.9-4.3x)` from twofold on.

    `over` is the reference, such as `vs baseline`.
    """
    if est >= 2:
        value = times(Interval(est, lo, hi))
        main, detail = value.main, value.detail
    else:
        main, detail = _percent_gain(est, lo, hi)
    return Value(f"{main}{over and f' {over}'} ({detail})", main=main, detail=detail, sort=est)


def _percent_gain(est: float, lo: float | None, hi: float | None) -> tuple[str, str]:
    """A gain in percent and its interval, rounded alike: `+25%`, and `21-29%` or `-5 to 12%`."""
    percentage = (est - 1) * 100
    sign = "+" if percentage > 0 else ""
    if lo is None or hi is None:
        return f"{sign}{_rounded(percentage, _places(percentage, 2))}%", ONE_ROUND
    shown, between = bounds(percentage, (lo - 1) * 100, (hi - 1) * 100, digits=2)
    return f"{sign}{shown}%", f"{between}%"


def whole(value: float | None, reason: str | None = None) -> Value:
    """A count with all its digits."""
    if value is None:
        return missing(reason)
    text = f"{round(value):,}"
    return Value(text, main=text, sort=value)


def when(started_at: str, finished_at: str) -> str:
    """`2026-03-12 14:03 UTC, 6 min 4 s`. A start that is not a valid date is shown unchanged."""
    start, end = moment(started_at), moment(finished_at)
    if start is None:
        return plain(started_at, NAME_LIMIT)
    day = f"{start:%Y-%m-%d %H:%M} UTC"
    return day if end is None or end < start else f"{day}, {_duration((end - start).total_seconds())}"
