"""The charts of noise: rounds as dots, waits as boxes, and reference decodes over minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loaderbench.report import style
from loaderbench.report.model import Json

_ROW_PX, _EDGE_PX = 44, 70


@dataclass(frozen=True)
class Box:
    """Quartiles of a time in ms, and the outermost readings within 1.5 interquartile ranges of them (Tukey 1977)."""

    label: str
    low: float
    q1: float
    median: float
    q3: float
    high: float


MEAN = "deviation from mean samples/s, %"


def rounds(labels: Sequence[str], percent: Sequence[Sequence[float]], axis: str = MEAN) -> Json:
    """A row of dots for each configuration, around 0: the configuration's mean, or the reference that `axis` names."""
    dots = [(place, x) for place, row in enumerate(percent) for x in row]
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [x for _, x in dots],
        "y": [place for place, _ in dots],
        "text": [style.safe(labels[place]) for place, _ in dots],
        "hovertemplate": "%{text}: %{x:+.2g}%<extra></extra>",
        "marker": {"size": 9, "opacity": 0.75},
    }
    return _rows([trace], axis, labels, zero=True)


def boxes(found: Sequence[Box], what: str) -> Json:
    """Times per batch, one box per row. `what` names them."""
    trace = {
        "type": "box",
        "orientation": "h",
        "y": list(range(len(found))),
        "q1": [box.q1 for box in found],
        "median": [box.median for box in found],
        "q3": [box.q3 for box in found],
        "lowerfence": [box.low for box in found],
        "upperfence": [box.high for box in found],
        "hoverinfo": "x",
        "width": 0.36,
        "line": {"width": 1.5},
    }
    return _rows([trace], f"{what}, ms", [box.label for box in found])


def drift(minutes: Sequence[float], ms: Sequence[float]) -> Json:
    """A dot for each repetition of a fixed piece of work."""
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": list(minutes),
        "y": list(ms),
        "hovertemplate": "%{x:.1f} min: %{y:.3g} ms<extra></extra>",
        "marker": {"size": 6, "opacity": 0.75},
    }

    def layout(theme: str) -> Json:
        axis = {"rangemode": "tozero", **style.axis(theme)}
        return {
            "margin": {"l": 56, "r": 16, "t": 8, "b": 48},
            "xaxis": {"title": style.axis_title("time since start of the run, min"), **axis},
            "yaxis": {"title": style.axis_title("decode time, ms"), **axis},
            "showlegend": False,
        }

    return style.figure([trace], layout, 260)


def _rows(traces: list[Json], x_title: str, labels: Sequence[str], *, zero: bool = False) -> Json:
    """A row for each label, the first at the top."""
    height = _EDGE_PX + _ROW_PX * len(labels)
    return style.figure(traces, lambda theme: _layout(x_title, labels, theme, zero=zero), height)


def _layout(x_title: str, labels: Sequence[str], theme: str, *, zero: bool) -> Json:
    """The layout, with each label above its row: a narrow screen has no space at the side."""
    x_axis: Json = {"title": style.axis_title(x_title), **style.axis(theme), "zeroline": zero}
    if zero:
        x_axis |= {"zerolinecolor": style.MUTED[theme], "zerolinewidth": 1.5}
    y_axis = {"tickvals": list(range(len(labels))), "range": [len(labels) - 0.6, -0.75], "showticklabels": False}
    return {
        "margin": {"l": 8, "r": 16, "t": 8, "b": 48},
        "xaxis": x_axis,
        "yaxis": {**style.axis(theme), **y_axis},
        "annotations": [_label(label, place, theme) for place, label in enumerate(labels)],
        "showlegend": False,
    }


def _label(label: str, place: int, theme: str) -> Json:
    where = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "y", "y": place, "yanchor": "bottom", "yshift": 9}
    font = {"size": 12, "color": style.MUTED[theme]}
    return {**where, "text": style.safe(label), "showarrow": False, "bgcolor": style.PAGE[theme], "font": font}
