"""The charts of noise as plotly figures: rounds as dots, waits as boxes, the reference decode over minutes."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.report import chart_style as style
from loaderbench.report.chart_style import Json
from loaderbench.report.parts_charts import BoxesChart, DriftChart, NoiseCharts, RoundsChart

_ROW_PX, _EDGE_PX = 44, 70


def noise_figures(part: NoiseCharts) -> Json:
    """Those that there are, by the name of their place."""
    found: Json = {}
    if part.rounds:
        found["rounds"] = [_rounds(part.rounds)]
    if part.waits:
        found["waits"] = [_waits(part.waits)]
    if part.drift:
        found["drift"] = [_drift(part.drift)]
    return found


def _rounds(part: RoundsChart) -> Json:
    """One row of dots for each configuration, about the line of its mean."""
    dots = [(place, x) for place, row in enumerate(part.percent) for x in row]
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [x for _, x in dots],
        "y": [place for place, _ in dots],
        "text": [style.safe(part.labels[place]) for place, _ in dots],
        "hovertemplate": "%{text}: %{x:+.2g} %<extra></extra>",
        "marker": {"size": 9, "opacity": 0.75},
    }
    return _figure([trace], "samples/s of a round over their mean, %", part.labels, zero=True)


def _waits(part: BoxesChart) -> Json:
    trace = {
        "type": "box",
        "orientation": "h",
        "y": list(range(len(part.boxes))),
        "q1": [box.q1 for box in part.boxes],
        "median": [box.median for box in part.boxes],
        "q3": [box.q3 for box in part.boxes],
        "lowerfence": [box.low for box in part.boxes],
        "upperfence": [box.high for box in part.boxes],
        "hoverinfo": "x",
        "width": 0.36,
        "line": {"width": 1.5},
    }
    return _figure([trace], "data wait per batch, ms", [box.label for box in part.boxes])


def _figure(traces: list[Json], x_title: str, labels: Sequence[str], *, zero: bool = False) -> Json:
    """A row for each label, the first above."""
    layouts = {theme: _layout(x_title, labels, theme, zero=zero) for theme in style.THEMES}
    return {"data": traces, "layout": layouts, "height": _EDGE_PX + _ROW_PX * len(labels)}


def _layout(x_title: str, labels: Sequence[str], theme: str, *, zero: bool) -> Json:
    """Each label stands above its row: beside it there is no room on a narrow screen."""
    x_axis: Json = {"title": style.axis_title(x_title), **style.axis(theme), "zeroline": zero}
    if zero:
        x_axis |= {"zerolinecolor": style.MUTED[theme], "zerolinewidth": 1.5}
    y_axis = {"tickvals": list(range(len(labels))), "range": [len(labels) - 0.6, -0.75], "showticklabels": False}
    return style.base(theme) | {
        "margin": {"l": 8, "r": 16, "t": 8, "b": 48},
        "xaxis": x_axis,
        "yaxis": {**style.axis(theme), **y_axis},
        "annotations": [_label(label, place, theme) for place, label in enumerate(labels)],
        "showlegend": False,
        "hovermode": "closest",
    }


def _label(label: str, place: int, theme: str) -> Json:
    where = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "y", "y": place, "yanchor": "bottom", "yshift": 9}
    font = {"size": 12, "color": style.MUTED[theme]}
    return {**where, "text": style.safe(label), "showarrow": False, "bgcolor": style.PAGE[theme], "font": font}


def _drift(part: DriftChart) -> Json:
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": list(part.minutes),
        "y": list(part.ms),
        "hovertemplate": "%{x:.1f} min: %{y:.3g} ms<extra></extra>",
        "marker": {"size": 6, "opacity": 0.75},
    }
    return {"data": [trace], "layout": {theme: _drift_layout(theme) for theme in style.THEMES}, "height": 260}


def _drift_layout(theme: str) -> Json:
    return style.base(theme) | {
        "margin": {"l": 56, "r": 16, "t": 8, "b": 48},
        "xaxis": {"title": style.axis_title("minutes since the run began"), "rangemode": "tozero", **style.axis(theme)},
        "yaxis": {"title": style.axis_title("ms"), "rangemode": "tozero", **style.axis(theme)},
        "showlegend": False,
        "hovermode": "closest",
    }
