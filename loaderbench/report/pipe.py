"""A pipe as a drawing: a piece for each part, as wide as its rate, with what flows through it.

Pieces lie below one another, each in a box of `WIDTH` by `HEIGHT` that the page stretches. They join into one
pipe at any row height. Widths are linear: a logarithm would hide the difference of a fifth that decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 1000.0, 100.0
_TAPER = 16.0  # of a piece's height, where it meets a narrower one
_TO_SCALE = 4.0  # what is wider than so many times the lowest rate is drawn as wide as there is room
_LEAST_ROOM, _MARGIN = 2.0, 1.2  # of the scale: over the lowest rate, and over the highest that is to scale


@dataclass(frozen=True)
class Band:
    """A piece of a row: where it begins, and how wide it is."""

    x: float
    width: float


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One part: its area and its two walls as points of SVG, and what flows through it.

    `beyond` is wider than the scale. A piece of unknown width has no area.
    """

    area: str
    walls: tuple[str, str]
    flow: Band
    beyond: bool


@dataclass(frozen=True, kw_only=True)
class Pipe:
    """All pieces, from the first to the last. `marks` are the left and right place of a rate drawn across them."""

    pieces: tuple[Piece, ...]
    marks: tuple[float, float] | None


def draw_pipe(rates: Sequence[float | None], flow: float, mark: float | None, neck: int | None = None) -> Pipe:
    """A pipe of these rates, all in samples/s; one that is not known is `None`. `mark` is drawn across all of it.

    `neck` is the part that holds the flow back: with an unknown rate it is drawn as wide as the flow.
    """
    end = _end_of_scale([rate for rate in rates if rate is not None], flow, mark)
    flow_width = WIDTH * min(1.0, flow / end)
    unknown = [flow_width if i == neck else WIDTH for i in range(len(rates))]
    widths = [unknown[i] if rate is None else WIDTH * min(1.0, rate / end) for i, rate in enumerate(rates)]
    around = [WIDTH, *widths, WIDTH]
    pieces = tuple(
        _piece(rate, around[i : i + 3], min(flow_width, widths[i]), beyond=rate is not None and rate > end)
        for i, rate in enumerate(rates)
    )
    shown = mark is not None and mark <= end
    return Pipe(pieces=pieces, marks=_sides(WIDTH * mark / end) if shown and mark else None)


def _end_of_scale(rates: Sequence[float], flow: float, mark: float | None) -> float:
    lowest = min([*rates, flow])
    near = [rate for rate in (*rates, flow, mark) if rate is not None and rate <= _TO_SCALE * lowest]
    return max(_LEAST_ROOM * lowest, _MARGIN * max(near)) or 1.0


def _piece(rate: float | None, around: Sequence[float], flow: float, *, beyond: bool) -> Piece:
    """One piece, by the widths of the one before it, its own, and that of the next."""
    before, own, after = around
    heights = (0.0, _TAPER, HEIGHT - _TAPER, HEIGHT)
    sides = [_sides(width) for width in (min(before, own), own, own, min(after, own))]
    left = [(side[0], y) for side, y in zip(sides, heights, strict=True)]
    right = [(side[1], y) for side, y in zip(sides, heights, strict=True)]
    return Piece(
        area="" if rate is None else _points([*left, *reversed(right)]),
        walls=(_points(left), _points(right)),
        flow=Band(round((WIDTH - flow) / 2, 1), round(flow, 1)),
        beyond=beyond,
    )


def _sides(width: float) -> tuple[float, float]:
    return round((WIDTH - width) / 2, 1), round((WIDTH + width) / 2, 1)


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)
