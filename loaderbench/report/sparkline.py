"""Samples/s over the runs of a suite as a sparkline: the position of each point, and a text description."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from loaderbench.records import Interval
from loaderbench.report import numbers

MOST_POINTS = 24
WIDTH, HEIGHT = 240, 56
_MARGIN = 5.0  # space for the last point's marker
_LEAST_SPAN = 0.2  # of the highest rate: the full height spans at least this, so noise does not look like a change

Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Sparkline:
    """A drawing of `WIDTH` by `HEIGHT`. `lines` and `bands` (the intervals) are lists of points in SVG notation.

    `dots` are points without an adjacent one, which no line would show. `last` is the newest measured point.
    """

    label: str
    caption: str
    lines: tuple[str, ...]
    bands: tuple[str, ...]
    dots: tuple[Point, ...]
    last: Point


def sparkline(rates: Sequence[Interval | None]) -> Sparkline | None:
    """Draw rates, the oldest first, with a gap for each `None`. Returns `None` for fewer than two measured runs."""
    shown = rates[-MOST_POINTS:]
    measured = [rate for rate in shown if rate is not None]
    if len(measured) < 2:
        return None
    place = _Scale(len(shown), measured)
    runs = [[(x, rate) for x, rate in pieces if rate] for _, pieces in groupby(enumerate(shown), key=_is_gap)]
    pieces = [[(place.x(x), rate) for x, rate in run] for run in runs if run]
    return Sparkline(
        label=_label(shown, len(rates)),
        caption=_caption(measured),
        lines=tuple(_points((x, place.y(rate.est)) for x, rate in piece) for piece in pieces if len(piece) > 1),
        bands=tuple(_points(_around(piece, place)) for piece in pieces if len(piece) > 1),
        dots=tuple((x, place.y(rate.est)) for piece in pieces if len(piece) == 1 for x, rate in piece),
        last=(pieces[-1][-1][0], place.y(pieces[-1][-1][1].est)),
    )


def _is_gap(numbered: tuple[int, Interval | None]) -> bool:
    return numbered[1] is None


class _Scale:
    """Maps the number of a run and its rate to a point. The drawing fills the height and need not begin at 0."""

    def __init__(self, count: int, rates: Sequence[Interval]) -> None:
        self._step = (WIDTH - 2 * _MARGIN) / (count - 1)
        ends = [end for rate in rates for end in _ends(rate)]
        low, high = min(ends), max(ends)
        self._span = max(high - low, _LEAST_SPAN * high) or 1.0
        self._middle = (low + high) / 2

    def x(self, number: int) -> float:
        return round(_MARGIN + number * self._step, 1)

    def y(self, rate: float) -> float:
        share = (rate - self._middle) / self._span
        return round(HEIGHT / 2 - share * (HEIGHT - 2 * _MARGIN), 1)


def _ends(rate: Interval) -> tuple[float, float]:
    """The ends of the interval, or the estimate twice if there is no interval."""
    low, high = rate.lo, rate.hi
    return (rate.est, rate.est) if low is None or high is None else (min(low, rate.est), max(high, rate.est))


def _around(piece: Sequence[tuple[float, Interval]], place: _Scale) -> Iterator[Point]:
    """Points along the upper bounds and back along the lower ones."""
    yield from ((x, place.y(_ends(rate)[1])) for x, rate in piece)
    yield from ((x, place.y(_ends(rate)[0])) for x, rate in reversed(piece))


def _points(points: Iterator[Point]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)


def _label(shown: Sequence[Interval | None], count: int) -> str:
    """A description with every number of the drawing."""
    which = f"{count:,} runs, oldest first"
    if count > len(shown):
        which = f"the newest {len(shown)} of {count:,} runs, oldest first"
    texts = (numbers.number(rate.est) if rate else numbers.NOT_MEASURED for rate in shown)
    return f"Samples/s of {which}: {', '.join(texts)}"


def _caption(measured: Sequence[Interval]) -> str:
    estimates = [rate.est for rate in measured]
    low, high = numbers.number(min(estimates)), numbers.number(max(estimates))
    return f"{low}{numbers.EN_DASH}{high} samples/s" if low != high else f"{low} samples/s"
