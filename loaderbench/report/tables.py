"""Helpers for tables and bars: shares that add up to 100%, aligned columns of times, and distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loaderbench.records import Spread
from loaderbench.records.words import count
from loaderbench.report import numbers
from loaderbench.report.model import Column, Row, Segment, Table, Text, Value

REST = "rest"  # the tone of the remainder
TONES = ("1", "2", "3", "4", "5", "6")
_SMALLEST = 3  # digits of the longest time in a column; all times have its number of decimals
_TENTHS = 1000
ACCURACY = Text("Percentiles accurate to \u00b15%.")
_QUANTILES = ("Mean", "p50", "p95", "p99", "Max")


def tones(lengths: Sequence[float]) -> list[str]:
    """A tone for each part, the strongest for the longest. Parts beyond the last tone look like the remainder."""
    ranked = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    return [TONES[ranked.index(i)] if ranked.index(i) < len(TONES) else REST for i in range(len(lengths))]


def shares(lengths: Sequence[float]) -> list[float]:
    """Each length divided by their sum, which must be positive."""
    whole = math.fsum(lengths)
    return [length / whole for length in lengths]


def segments(names: Sequence[str], parts: Sequence[float], colors: Sequence[str]) -> tuple[Segment, ...]:
    """The segments of a bar, in order. `parts` are shares that add up to 1."""
    starts = [math.fsum(parts[:i]) for i in range(len(parts))]
    texts = [f"{name}: {value.text}" for name, value in zip(names, percentages(parts), strict=True)]
    return tuple(Segment(*piece) for piece in zip(texts, starts, parts, colors, strict=True))


def percentages(parts: Sequence[float]) -> list[Value]:
    """Shares that add up to 1, to a tenth of a percent. The written numbers add up to 100.0, too.

    The remainder of rounding goes to the shares that lost the most (Hamilton's method).
    """
    tenths = [math.floor(part * _TENTHS) for part in parts]
    left = _TENTHS - sum(tenths)
    for i in sorted(range(len(parts)), key=lambda i: tenths[i] - parts[i] * _TENTHS)[:left]:
        tenths[i] += 1
    return [_percentage(part, whole) for part, whole in zip(parts, tenths, strict=True)]


def percentage(part: float) -> Value:
    """A share in the format of `percentages`."""
    return _percentage(part, round(part * _TENTHS))


def _percentage(part: float, tenths: int) -> Value:
    text = "<0.1%" if part > 0 and tenths == 0 else f"{tenths / 10:.1f}%"
    return Value(text, main=text, sort=part)


def milliseconds(times_s: Sequence[float | None], reason: str | None = None) -> list[Value]:
    """A column of times, all with the decimals of three digits of the longest."""
    known = [time_s for time_s in times_s if time_s is not None]
    longest = max(known, default=0.0) * 1e3
    places = max(1, _SMALLEST - 1 - math.floor(math.log10(longest))) if longest > 0 else 1
    return [numbers.missing(reason) if time_s is None else _milliseconds(time_s, places) for time_s in times_s]


def _milliseconds(time_s: float, places: int) -> Value:
    smallest = 10.0**-places
    hidden = 0 < time_s * 1e3 < smallest / 2
    text = f"<{smallest:.{places}f}" if hidden else f"{time_s * 1e3:,.{places}f}"
    return Value(text, main=text, sort=time_s)


def left_out(rows: int, where: str, one: str = "more config", many: str | None = None) -> str | None:
    """A note below a table that leaves out this many rows, such as `3 more configs in run.json.`, if any."""
    return f"{count(rows, one, many)} {where}." if rows > 0 else None


def of_spreads(caption: str, one: str, many: str, found: Sequence[tuple[str, Spread]]) -> Table:
    """A table of distributions in ms, one row each. `one` and `many` name the counted items."""
    columns = (Column("Time"), *(Column(name, numeric=True) for name in _QUANTILES))
    over = count(max(spread.count for _, spread in found), one, many)
    rows = tuple(
        Row((Text(name), *milliseconds((spread.mean_s, spread.p50_s, spread.p95_s, spread.p99_s, spread.max_s))))
        for name, spread in found
    )
    return Table(f"{caption}, ms ({over})", columns, rows)
