"""The pipeline drawn as a pipe: each part is as wide as its rate, with the flow inside.

Pieces are stacked, each in a box of `WIDTH` by `HEIGHT` that the report stretches. They form one pipe at any row
height. Widths are linear, because a logarithmic scale would hide decisive differences of a fifth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 1000.0, 100.0
_TAPER = 16.0  # height of the taper toward a narrower piece
_TO_SCALE = 4.0  # a rate above this multiple of the lowest one is drawn at the full width
_LEAST_ROOM, _MARGIN = 2.0, 1.2  # end of the scale: multiples of the lowest rate, and of the highest one drawn to scale


@dataclass(frozen=True)
class Band:
    """A horizontal band: its left edge and width."""

    x: float
    width: float


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One part: its area and its two walls as SVG points, and the flow through it.

    `beyond` is true if the part is wider than the scale. A part with an unknown rate has no area.
    """

    area: str
    walls: tuple[str, str]
    flow: Band
    beyond: bool


@dataclass(frozen=True, kw_only=True)
class Pipe:
    """All pieces, from first to last. `marks` are the left and right positions of a rate drawn across all pieces."""

    pieces: tuple[Piece, ...]
    marks: tuple[float, float] | None


def draw_pipe(rates: Sequence[float | None], flow: float, mark: float | None, neck: int | None = None) -> Pipe:
    """Draw a pipe for these rates in samples/s, `None` if unknown. `mark` is a rate drawn across all pieces.

    `neck` is the index of the part that limits the flow. If its rate is unknown, it is drawn as wide as the flow.
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
    """One piece, from the widths of the previous piece, itself and the next one."""
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
