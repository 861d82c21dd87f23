"""The charts as plotly figures: plain dicts, since importing plotly takes longer than drawing the page.

Colours live in the layout alone, in a light and a dark one, so that the page can change them without new data.
"""

from __future__ import annotations

from loaderbench.report import chart_style as style
from loaderbench.report.chart_style import Json
from loaderbench.report.charts_cost import cost_figures
from loaderbench.report.charts_noise import noise_figures
from loaderbench.report.charts_timeline import timeline_figure
from loaderbench.report.parts import Curve, ScalingPart
from loaderbench.report.tree import ReportDocument

CONFIG: Json = {"displayModeBar": False, "displaylogo": False, "showSendToCloud": False, "responsive": True}


def figures(document: ReportDocument) -> Json:
    """Every chart of the page by the name of its place, each with its traces and one layout for each theme."""
    found: Json = {}
    if document.scaling:
        found["scaling"] = [scaling_figure(document.scaling)]
    if document.cost:
        found |= cost_figures(document.cost)
    if document.noise_charts:
        found |= noise_figures(document.noise_charts)
    if document.timeline:
        found["timeline"] = [timeline_figure(trial, document.timeline.x_axis) for trial in document.timeline.trials]
    return found


def scaling_figure(part: ScalingPart) -> Json:
    """Samples/s over one axis, with error bars and the level to compare with."""
    traces = [_curve(curve, i) for i, curve in enumerate(part.curves)]
    return {"data": traces, "layout": {theme: _scaling_layout(part, theme) for theme in style.THEMES}, "height": 420}


def _curve(curve: Curve, i: int) -> Json:
    trace: Json = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": style.safe(curve.name),
        "x": list(curve.x),
        "y": list(curve.y),
        "text": [style.safe(said) for said in curve.hover],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"dash": style.DASHES[i % len(style.DASHES)], "width": 2},
        "marker": {"symbol": style.SYMBOLS[i % len(style.SYMBOLS)], "size": 9},
    }
    if any(above is not None for above in curve.above):
        ends = {"array": list(curve.above), "arrayminus": list(curve.below)}
        trace["error_y"] = {"type": "data", "symmetric": False, "thickness": 1.5, "width": 5, **ends}
    return trace


def _scaling_layout(part: ScalingPart, theme: str) -> Json:
    x_axis: Json = {"title": style.axis_title(part.x_axis), **style.axis(theme)}
    x_axis |= {"tickmode": "array", "tickvals": list(part.ticks)}
    if not part.numeric:
        x_axis |= {"ticktext": [style.safe(label) for label in part.labels], "range": [-0.5, len(part.ticks) - 0.5]}
    layout = style.base(theme)
    layout |= {
        "margin": {"l": 64, "r": 16, "t": 16, "b": 56},
        "xaxis": x_axis,
        "yaxis": {"title": style.axis_title(part.y_axis), "range": [0, part.top], **style.axis(theme)},
        "showlegend": len(part.curves) > 1,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hovermode": "closest",
    }
    return layout | _reference(part, theme)


def _reference(part: ScalingPart, theme: str) -> Json:
    """The dashed level, its name above it at the left, on paper: what it covers would make it unreadable."""
    if part.reference is None:
        return {}
    level = part.reference.value
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": level, "y1": level}
    label = {"xref": "paper", "x": 0, "xanchor": "left", "y": level, "yanchor": "bottom", "showarrow": False}
    label |= {"text": style.safe(part.reference.label), "bgcolor": style.PAGE[theme], "borderpad": 1, "yshift": 2}
    colour = style.MUTED[theme]
    return {
        "shapes": [{**line, "line": {"dash": "dash", "width": 1.5, "color": colour}}],
        "annotations": [{**label, "font": {"color": colour}}],
    }
