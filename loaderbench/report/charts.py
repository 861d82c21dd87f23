"""The charts as plotly figures: plain dicts, since importing plotly takes longer than drawing the page.

Colours live in the layout alone, in a light and a dark one, so that the page can change them without new data.
"""

from __future__ import annotations

import html
from typing import Any

from loaderbench.report.parts import Curve, Panel, ReportDocument, ScalingPart, TimelineTrial

Json = dict[str, Any]

CONFIG: Json = {"displayModeBar": False, "displaylogo": False, "showSendToCloud": False, "responsive": True}

# Okabe and Ito's colours without the ones that vanish on the paper: told apart with any colour vision.
_LINES = {
    "light": ["#0b63a5", "#b34a00", "#00735a", "#9a4b82", "#5d5d5d", "#7a6400", "#3f3fbf", "#a3202a"],
    "dark": ["#6bb6f2", "#f0965a", "#4cc9a3", "#e09cc6", "#b8b8b8", "#e6d04d", "#a5a5ff", "#ff8a8a"],
}
_INK = {"light": "#1f2328", "dark": "#e3e6ea"}
_MUTED = {"light": "#59636e", "dark": "#a0a8b1"}
_GRID = {"light": "#e4e7eb", "dark": "#30363d"}
_PAPER = {"light": "#ffffff", "dark": "#161b22"}
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down", "cross")
_THEMES = ("light", "dark")
_DASH_NAMES = ("solid", "dashed", "dotted", "dash-dotted")
_STRIP_PX, _GAP_PX, _EDGE_PX = 104, 56, 112


def figures(document: ReportDocument) -> Json:
    """Every chart of the page by the name of its place, each with its traces and one layout for each theme."""
    found: Json = {}
    if document.scaling:
        found["scaling"] = [scaling_figure(document.scaling)]
    if document.timeline:
        found["timeline"] = [timeline_figure(trial) for trial in document.timeline.trials]
    return found


def scaling_figure(part: ScalingPart) -> Json:
    """Samples/s over one axis, with error bars and the level to compare with."""
    traces = [_curve(curve, i) for i, curve in enumerate(part.curves)]
    return {"data": traces, "layout": {theme: _scaling_layout(part, theme) for theme in _THEMES}, "height": 420}


def _curve(curve: Curve, i: int) -> Json:
    trace: Json = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": _text(curve.name),
        "x": [_text(x) if isinstance(x, str) else x for x in curve.x],
        "y": list(curve.y),
        "text": [_text(said) for said in curve.hover],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"dash": _DASHES[i % len(_DASHES)], "width": 2},
        "marker": {"symbol": _SYMBOLS[i % len(_SYMBOLS)], "size": 9},
    }
    if any(above is not None for above in curve.above):
        ends = {"array": list(curve.above), "arrayminus": list(curve.below)}
        trace["error_y"] = {"type": "data", "symmetric": False, "thickness": 1.5, "width": 5, **ends}
    return trace


def _scaling_layout(part: ScalingPart, theme: str) -> Json:
    x_axis: Json = {"title": _title(part.x_axis), **_axis(theme)}
    if part.numeric:
        x_axis |= {"tickmode": "array", "tickvals": list(part.ticks)}
    else:
        ticks = [_text(str(tick)) for tick in part.ticks]
        x_axis |= {"type": "category", "categoryorder": "array", "categoryarray": ticks}
    layout = _base(theme)
    layout |= {
        "margin": {"l": 64, "r": 16, "t": 16, "b": 56},
        "xaxis": x_axis,
        "yaxis": {"title": _title(part.y_axis), "rangemode": "tozero", **_axis(theme)},
        "showlegend": len(part.curves) > 1,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hovermode": "closest",
    }
    return layout | _reference(part, theme)


def _reference(part: ScalingPart, theme: str) -> Json:
    """The dashed level; the axis reaches it, since a shape alone does not stretch one."""
    if part.reference is None:
        return {}
    level = part.reference.value
    ends = [y + (above or 0) for curve in part.curves for y, above in zip(curve.y, curve.above, strict=True)]
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": level, "y1": level}
    label = {"xref": "paper", "x": 1, "xanchor": "right", "y": level, "yanchor": "bottom", "showarrow": False}
    colour = _MUTED[theme]
    return {
        "shapes": [{**line, "line": {"dash": "dash", "width": 1.5, "color": colour}}],
        "annotations": [{**label, "text": _text(part.reference.label), "font": {"color": colour}}],
        "yaxis": {
            "title": _title(part.y_axis),
            "range": [0, 1.08 * max([level, *ends])],
            **_axis(theme),
        },
    }


def timeline_figure(trial: TimelineTrial) -> Json:
    """The strips of one trial above each other, on one axis of seconds."""
    traces = [_series(panel, i, k) for i, panel in enumerate(trial.panels) for k in range(len(panel.series))]
    height = _EDGE_PX + len(trial.panels) * (_STRIP_PX + _GAP_PX)
    return {"data": traces, "layout": {t: _timeline_layout(trial, t) for t in _THEMES}, "height": height}


def _series(panel: Panel, i: int, k: int) -> Json:
    series = panel.series[k]
    return {
        "type": "scatter",
        "mode": "markers" if panel.points else "lines",
        "name": _text(series.name),
        "x": list(series.seconds),
        "y": list(series.values),
        "yaxis": "y" if i == 0 else f"y{i + 1}",
        "hovertemplate": f"%{{x:.2f}} s: %{{y:.4g}} {_text(panel.unit)}",
        "showlegend": False,
        "marker": {"size": 4, "symbol": _SYMBOLS[k % len(_SYMBOLS)]},
        "line": {"width": 1.5, "dash": _DASHES[k % len(_DASHES)]},
    }


def _timeline_layout(trial: TimelineTrial, theme: str) -> Json:
    layout = _base(theme)
    layout |= {
        "margin": {"l": 56, "r": 16, "t": 52, "b": 60},
        "xaxis": {
            "title": _title("seconds since the trial began"),
            "rangemode": "tozero",
            **_axis(theme),
            "anchor": _last_axis(trial),
        },
        "annotations": [],
        "hovermode": "closest",
    }
    strips = len(trial.panels)
    for i, panel in enumerate(trial.panels):
        low, high = _strip(i, strips)
        axis: Json = {"domain": [low, high], "rangemode": "tozero", "nticks": 4, **_axis(theme)}
        if panel.top is not None:
            axis["range"] = [0, panel.top * 1.03]
        layout["yaxis" if i == 0 else f"yaxis{i + 1}"] = axis
        layout["annotations"].append(_strip_title(panel, high, theme))
    return layout


def _last_axis(trial: TimelineTrial) -> str:
    return "y" if len(trial.panels) == 1 else f"y{len(trial.panels)}"


def _strip(i: int, strips: int) -> tuple[float, float]:
    """The lowest and highest place of strip `i` counted from above, 0 to 1 of the drawing."""
    whole = strips * _STRIP_PX + (strips - 1) * _GAP_PX
    high = 1 - i * (_STRIP_PX + _GAP_PX) / whole
    return max(high - _STRIP_PX / whole, 0.0), high


def _strip_title(panel: Panel, high: float, theme: str) -> Json:
    """The strip's name, and below it which line is which: a legend would stand far from the strip it explains."""
    text = _text(panel.title)
    if 1 < len(panel.series) <= len(_DASH_NAMES):
        named = zip(panel.series, _DASH_NAMES, strict=False)
        lines = ", ".join(f"{_text(series.name)} {dash}" for series, dash in named)
        text += f'<br><span style="font-size:12px;color:{_MUTED[theme]}">{lines}</span>'
    where = {"xref": "paper", "yref": "paper", "x": 0, "xanchor": "left", "y": high, "yanchor": "bottom"}
    return {**where, "text": text, "align": "left", "showarrow": False, "font": {"color": _INK[theme]}}


def _base(theme: str) -> Json:
    return {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": _INK[theme]},
        "colorway": _LINES[theme],
        "separators": ".,",
        "dragmode": False,
        "hoverlabel": {"bgcolor": _PAPER[theme], "bordercolor": _MUTED[theme], "font": {"color": _INK[theme]}},
    }


def _axis(theme: str) -> Json:
    colours = {"gridcolor": _GRID[theme], "zerolinecolor": _GRID[theme], "linecolor": _MUTED[theme]}
    return {
        **colours,
        "tickfont": {"color": _MUTED[theme]},
        "separatethousands": True,
        "fixedrange": True,
        "automargin": True,
    }


def _title(text: str) -> Json:
    return {"text": _text(text), "font": {"size": 13}, "standoff": 8}


def _text(text: str) -> str:
    """Plotly reads its strings as a little HTML; nothing that came from outside may be that."""
    return html.escape(text, quote=False)
