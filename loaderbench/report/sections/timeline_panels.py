"""The panels of the timeline: the series in each panel, their units, and the downsampling of long series."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from loaderbench.records.metrics import METRICS
from loaderbench.report import metrics, style, words
from loaderbench.report.model import Json
from loaderbench.report.view import IN_NEXT

LARGEST = 1e300
"""The largest valid reading. Unit conversion cannot overflow below it."""

Line = tuple[Any, Any]
"""Seconds and values: two arrays of floats of shape (n,), in order of time."""

_PANEL_PX, _GAP_PX, _EDGE_PX = 104, 56, 112
_MILLISECONDS = metrics.Scale("ms", 1e3)
_OF_DEVICE = re.compile(r"gpu(\d+)_(\w+)")


@dataclass(frozen=True)
class Kind:
    """How to draw the readings of one kind: panel, name in the panel, and the factor to the panel's unit."""

    panel: str
    unit: str
    name: str
    factor: float = 1.0
    top: float | None = None
    points: bool = False
    needs_consumer: bool = False

    def as_consumed(self, has_data_wait: bool) -> Kind:
        """The kind with names for a run with or without a consumer."""
        if has_data_wait or not self.needs_consumer:
            return self
        return replace(self, panel=f"{words.capitalised(IN_NEXT)} per batch", name=IN_NEXT)

    @property
    def title(self) -> str:
        """The panel's name with its unit."""
        return ", ".join(filter(None, (self.panel, self.unit)))


@dataclass(frozen=True)
class Panel:
    """One panel: the kind of its first series, the names of all series, and their Plotly traces."""

    kind: Kind
    names: Sequence[str]
    traces: Sequence[Json]

    def range(self) -> Json:
        """The range of the axis if its maximum is known (100 for a percentage), which makes panels comparable."""
        if self.kind.top is None:
            return {}
        highest = max(value for trace in self.traces for value in trace["y"])
        return {"range": [0, max(self.kind.top, highest) * 1.03]}


def _kinds() -> dict[str, Kind]:
    """Kinds by the name of their series, in the order of the panels."""
    kinds = {}
    for metric in METRICS:
        strip, top = metric.strip, 100 if metric.strip.unit == "percent" else None
        scale = _MILLISECONDS if strip.unit == "s" else metrics.SCALES[strip.unit]
        unit = f"{scale.unit} {metric.of}".strip() if strip.unit == metric.unit else scale.unit
        kinds[strip.series] = Kind(
            strip.panel, unit, strip.name, scale.factor, top, strip.points, metric.needs_consumer
        )
    return kinds


_KINDS = _kinds()
_PANELS = tuple(dict.fromkeys(kind.panel for kind in _KINDS.values()))


def kind_of(series: str) -> Kind | None:
    """How to draw a series; `None` if the report does not know it."""
    device = _OF_DEVICE.fullmatch(series)
    if device is None:
        return _KINDS.get(series)
    kind = _KINDS.get(f"gpu{{}}_{device[2]}")
    return kind and replace(kind, name=kind.name.format(device[1]))


def figure(lines: Mapping[str, Line], most: int, x_axis: str, *, has_data_wait: bool) -> Json:
    """The panels of one trial, stacked on one time axis in seconds. Each series has at most `most` points."""
    members: dict[str, list[tuple[Kind, Line]]] = {}
    for name, line in sorted(lines.items()):
        kind = kind_of(name)
        if kind:
            members.setdefault(kind.panel, []).append((kind.as_consumed(has_data_wait), line))
    drawn = [_panel(i, members[panel], most) for i, panel in enumerate(p for p in _PANELS if p in members)]
    height = _EDGE_PX + len(drawn) * (_PANEL_PX + _GAP_PX)
    traces = [trace for panel in drawn for trace in panel.traces]
    return style.figure(traces, lambda theme: _layout(drawn, x_axis, theme), height)


def _panel(i: int, members: Sequence[tuple[Kind, Line]], most: int) -> Panel:
    traces = [_trace(kind, min_max(line, most), i, k) for k, (kind, line) in enumerate(members)]
    return Panel(members[0][0], [kind.name for kind, _ in members], traces)


def _trace(kind: Kind, line: Line, i: int, k: int) -> Json:
    """Series `k` of panel `i`, in the panel's unit, with as many digits as are visible."""
    seconds, values = line
    return {
        "type": "scatter",
        "mode": "markers" if kind.points else "lines",
        "name": style.safe(kind.name),
        "x": [round(t, 3) for t in seconds.tolist()],
        "y": [float(f"{value * kind.factor:.4g}") for value in values.tolist()],
        "yaxis": "y" if i == 0 else f"y{i + 1}",
        "hovertemplate": f"%{{x:.2f}} s: %{{y:.4g}} {style.safe(kind.unit)}",
        "showlegend": False,
        "marker": {"size": 4, "symbol": style.SYMBOLS[k % len(style.SYMBOLS)]},
        "line": {"width": 1.5, "dash": style.DASHES[k % len(style.DASHES)]},
    }


def min_max(line: Line, most: int) -> Line:
    """At most `most` points: the minimum and maximum of each of `most / 2` equal sections, in order of time.

    Unlike means or every n-th reading, this keeps peaks.
    """
    seconds, values = line
    if len(values) <= most:
        return line
    edges = np.arange(most // 2 + 1) * len(values) // (most // 2)
    ends = {int(low + find(values[low:high])) for low, high in pairwise(edges) for find in (np.argmin, np.argmax)}
    kept = sorted(ends)
    return seconds[kept], values[kept]


def _layout(drawn: Sequence[Panel], x_axis: str, theme: str) -> Json:
    last = "y" if len(drawn) == 1 else f"y{len(drawn)}"
    x = {"title": style.axis_title(x_axis), "rangemode": "tozero", **style.axis(theme), "anchor": last}
    layout: Json = {"margin": {"l": 56, "r": 16, "t": 52, "b": 60}, "xaxis": x, "annotations": []}
    for i, panel in enumerate(drawn):
        low, high = _place(i, len(drawn))
        axis = {"domain": [low, high], "rangemode": "tozero", "nticks": 4, **style.axis(theme), **panel.range()}
        layout["yaxis" if i == 0 else f"yaxis{i + 1}"] = axis
        layout["annotations"].append(_title(panel, high, theme))
    return layout


def _place(i: int, count: int) -> tuple[float, float]:
    """The bottom and top of panel `i`, counted from above, as positions of 0 to 1 in the drawing."""
    whole = count * _PANEL_PX + (count - 1) * _GAP_PX
    high = 1 - i * (_PANEL_PX + _GAP_PX) / whole
    return max(high - _PANEL_PX / whole, 0.0), high


def _title(panel: Panel, high: float, theme: str) -> Json:
    """The panel's name above the names of its lines. A legend would be too far from the panel."""
    text = style.safe(panel.kind.title)
    if 1 < len(panel.names) <= len(style.DASH_NAMES):
        lines = ", ".join(f"{style.safe(name)} {d}" for name, d in zip(panel.names, style.DASH_NAMES, strict=False))
        text += f'<br><span style="font-size:12px;color:{style.MUTED[theme]}">{lines}</span>'
    where = {"xref": "paper", "yref": "paper", "x": 0, "xanchor": "left", "y": high, "yanchor": "bottom"}
    return {**where, "text": text, "align": "left", "showarrow": False, "font": {"color": style.INK[theme]}}
