"""The branches of the tree that are charts of many trials: what speed costs, and how still the machine was."""

from __future__ import annotations

from dataclasses import dataclass

from loaderbench.report.parts import Table


@dataclass(frozen=True)
class CostPoint:
    """A configuration by what it takes (`x`, in the unit of its axis) and gives (`y`, samples/s)."""

    x: float
    y: float
    hover: str
    on_line: bool
    best: bool


@dataclass(frozen=True)
class CostChart:
    """Samples/s over one resource; the points on the line stand in the order of `x`."""

    id: str
    x_axis: str
    points: tuple[CostPoint, ...]


@dataclass(frozen=True)
class CostPart:
    """What more samples/s cost, a chart for each resource that was measured."""

    charts: tuple[CostChart, ...]
    caption: str
    table: Table


@dataclass(frozen=True)
class RoundsChart:
    """How far the rounds of each configuration lie from its estimate: percentages by label, one list for each."""

    labels: tuple[str, ...]
    percent: tuple[tuple[float, ...], ...]
    caption: str
    table: Table


@dataclass(frozen=True)
class Box:
    """The quartiles of one time, in ms, and the readings farthest out within 1.5 times their distance (Tukey 1977)."""

    label: str
    low: float
    q1: float
    median: float
    q3: float
    high: float


@dataclass(frozen=True)
class BoxesChart:
    """Data waits per batch of some configurations."""

    boxes: tuple[Box, ...]
    caption: str
    table: Table


@dataclass(frozen=True)
class DriftChart:
    """One fixed piece of work, timed again and again: ms over minutes since the run began."""

    minutes: tuple[float, ...]
    ms: tuple[float, ...]
    caption: str
    table: Table


@dataclass(frozen=True)
class NoiseCharts:
    """How still the machine was, each chart only where it has something to show."""

    rounds: RoundsChart | None
    waits: BoxesChart | None
    drift: DriftChart | None
