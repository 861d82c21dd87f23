"""The panels of the timeline: which readings are drawn where, in which unit, and how a long series is thinned."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from loaderbench.records.metrics import METRICS
from loaderbench.report import metrics, style
from loaderbench.report.model import Json

LARGEST = 1e300
"""A reading beyond it is none; below it no unit makes it infinite."""

Line = tuple[Any, Any]
"""Seconds and values: two arrays of floats of shape (n,), in the order of time."""

_PANEL_PX, _GAP_PX, _EDGE_PX = 104, 56, 112


@dataclass(frozen=True)
class Series:
    """Readings of one metric over seconds, in the unit of their panel."""

    name: str
    seconds: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Panel:
    """One strip of the timeline. `top` fixes the end of its scale where that is known (100 for a percentage)."""

    title: str
    unit: str
    points: bool
    top: float | None
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Kind:
    """How the readings of one kind are drawn: their panel, their name there, and their factor to the panel's unit."""

    panel: str
    unit: str
    name: str
    factor: float = 1.0
    top: float | None = None
    points: bool = False

    @property
    def title(self) -> str:
        """The panel with its unit."""
        return ", ".join(filter(None, (self.panel, self.unit)))


_MILLISECONDS = metrics.Scale("ms", 1e3)


def _kinds() -> dict[str, Kind]:
    """By the name of their series, in the order of the panels."""
    found = {}
    for metric in METRICS:
        strip, top = metric.strip, 100 if metric.strip.unit == "percent" else None
        scale = _MILLISECONDS if strip.unit == "s" else metrics.SCALES[strip.unit]
        unit = f"{scale.unit} {metric.of}".strip()
        found[strip.series] = Kind(strip.panel, unit, strip.name, scale.factor, top, strip.points)
    return found


_KINDS = _kinds()
_PANELS = tuple(dict.fromkeys(kind.panel for kind in _KINDS.values()))
_OF_DEVICE = re.compile(r"gpu(\d+)_(\w+)")


def kind_of(series: str) -> Kind | None:
    """How a series is drawn; `None` for one that the page does not know."""
    device = _OF_DEVICE.fullmatch(series)
    if device is None:
        return _KINDS.get(series)
    kind = _KINDS.get(f"gpu{{}}_{device[2]}")
    return kind and replace(kind, name=kind.name.format(device[1]))


def panels(lines: Mapping[str, Line], most: int) -> tuple[Panel, ...]:
    """The panels from above to below, each series of at most `most` points."""
    members: dict[str, list[tuple[Kind, Line]]] = {}
    for name, line in sorted(lines.items()):
        kind = kind_of(name)
        if kind:
            members.setdefault(kind.panel, []).append((kind, line))
    return tuple(_panel(members[panel], most) for panel in _PANELS if panel in members)


def _panel(members: Sequence[tuple[Kind, Line]], most: int) -> Panel:
    first = members[0][0]
    series = tuple(_series(kind, line, most) for kind, line in members)
    highest = max(value for one in series for value in one.values)
    top = None if first.top is None else max(first.top, highest)
    return Panel(first.title, first.unit, first.points, top, series)


def _series(kind: Kind, line: Line, most: int) -> Series:
    seconds, values = min_max(line, most)
    shown = tuple(_four_digits(value * kind.factor) for value in values.tolist())
    return Series(kind.name, tuple(round(t, 3) for t in seconds.tolist()), shown)


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")


def min_max(line: Line, most: int) -> Line:
    """At most `most` points: the lowest and the highest of each of `most / 2` equal stretches, in their order.

    Peaks survive, which a mean or every n-th reading would hide.
    """
    seconds, values = line
    if len(values) <= most:
        return line
    edges = np.arange(most // 2 + 1) * len(values) // (most // 2)
    ends = {int(low + find(values[low:high])) for low, high in pairwise(edges) for find in (np.argmin, np.argmax)}
    kept = sorted(ends)
    return seconds[kept], values[kept]


def figure(drawn: Sequence[Panel], x_axis: str) -> Json:
    """The panels of one trial above each other, on one axis of seconds."""
    traces = [_trace(panel, i, k) for i, panel in enumerate(drawn) for k in range(len(panel.series))]
    height = _EDGE_PX + len(drawn) * (_PANEL_PX + _GAP_PX)
    return style.figure(traces, lambda theme: _layout(drawn, x_axis, theme), height)


def _trace(panel: Panel, i: int, k: int) -> Json:
    series = panel.series[k]
    return {
        "type": "scatter",
        "mode": "markers" if panel.points else "lines",
        "name": style.safe(series.name),
        "x": list(series.seconds),
        "y": list(series.values),
        "yaxis": "y" if i == 0 else f"y{i + 1}",
        "hovertemplate": f"%{{x:.2f}} s: %{{y:.4g}} {style.safe(panel.unit)}",
        "showlegend": False,
        "marker": {"size": 4, "symbol": style.SYMBOLS[k % len(style.SYMBOLS)]},
        "line": {"width": 1.5, "dash": style.DASHES[k % len(style.DASHES)]},
    }


def _layout(drawn: Sequence[Panel], x_axis: str, theme: str) -> Json:
    last = "y" if len(drawn) == 1 else f"y{len(drawn)}"
    x = {"title": style.axis_title(x_axis), "rangemode": "tozero", **style.axis(theme), "anchor": last}
    layout: Json = {"margin": {"l": 56, "r": 16, "t": 52, "b": 60}, "xaxis": x, "annotations": []}
    for i, panel in enumerate(drawn):
        low, high = _place(i, len(drawn))
        axis: Json = {"domain": [low, high], "rangemode": "tozero", "nticks": 4, **style.axis(theme)}
        if panel.top is not None:
            axis["range"] = [0, panel.top * 1.03]
        layout["yaxis" if i == 0 else f"yaxis{i + 1}"] = axis
        layout["annotations"].append(_title(panel, high, theme))
    return layout


def _place(i: int, count: int) -> tuple[float, float]:
    """The lowest and highest place of panel `i` counted from above, 0 to 1 of the drawing."""
    whole = count * _PANEL_PX + (count - 1) * _GAP_PX
    high = 1 - i * (_PANEL_PX + _GAP_PX) / whole
    return max(high - _PANEL_PX / whole, 0.0), high


def _title(panel: Panel, high: float, theme: str) -> Json:
    """The panel's name, and below it which line is which: a legend would stand far from the panel it explains."""
    text = style.safe(panel.title)
    if 1 < len(panel.series) <= len(style.DASH_NAMES):
        named = zip(panel.series, style.DASH_NAMES, strict=False)
        lines = ", ".join(f"{style.safe(series.name)} {dash}" for series, dash in named)
        text += f'<br><span style="font-size:12px;color:{style.MUTED[theme]}">{lines}</span>'
    where = {"xref": "paper", "yref": "paper", "x": 0, "xanchor": "left", "y": high, "yanchor": "bottom"}
    return {**where, "text": text, "align": "left", "showarrow": False, "font": {"color": style.INK[theme]}}
