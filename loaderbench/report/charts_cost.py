"""Samples/s over what they take, as plotly figures: the line of what nothing beats, and all others beside it."""

from __future__ import annotations

from loaderbench.report import chart_style as style
from loaderbench.report.chart_style import Json
from loaderbench.report.parts_charts import CostChart, CostPart, CostPoint

_HEIGHT_PX = 300


def cost_figures(part: CostPart) -> Json:
    """A figure for each resource, by the name of its place."""
    return {f"cost-{chart.id}": [_figure(chart)] for chart in part.charts}


def _figure(chart: CostChart) -> Json:
    line = [point for point in chart.points if point.on_line]
    beaten = [point for point in chart.points if not point.on_line and not point.best]
    best = [point for point in chart.points if point.best]
    traces = [
        _trace("others", beaten, {"symbol": "circle-open", "size": 8}, "markers"),
        _trace("unbeaten", line, {"symbol": "circle", "size": 9}, "lines+markers"),
        _trace("best", best, {"symbol": "star", "size": 14}, "markers"),
    ]
    shown = [trace for trace in traces if trace["x"]]
    return {"data": shown, "layout": {t: _layout(chart, t) for t in style.THEMES}, "height": _HEIGHT_PX}


def _trace(name: str, points: list[CostPoint], marker: Json, mode: str) -> Json:
    return {
        "type": "scatter",
        "mode": mode,
        "name": name,
        "x": [point.x for point in points],
        "y": [point.y for point in points],
        "text": [style.safe(point.hover) for point in points],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"shape": "hv", "width": 1.5},
        "marker": marker,
    }


def _layout(chart: CostChart, theme: str) -> Json:
    return style.base(theme) | {
        "colorway": [style.MUTED[theme], style.LINES[theme][0], style.LINES[theme][1]],
        "margin": {"l": 56, "r": 12, "t": 30, "b": 48},
        "xaxis": {"title": style.axis_title(chart.x_axis), "rangemode": "tozero", **style.axis(theme)},
        "yaxis": {"title": style.axis_title("samples/s"), "rangemode": "tozero", **style.axis(theme)},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "showlegend": True,
        "hovermode": "closest",
    }
