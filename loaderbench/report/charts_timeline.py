"""The timeline as a plotly figure: strips above each other on one axis of seconds."""

from __future__ import annotations

from loaderbench.report import chart_style as style
from loaderbench.report.chart_style import Json
from loaderbench.report.parts import Panel, TimelineTrial

_STRIP_PX, _GAP_PX, _EDGE_PX = 104, 56, 112


def timeline_figure(trial: TimelineTrial, x_axis: str) -> Json:
    """The strips of one trial above each other, on one axis of seconds."""
    traces = [_series(panel, i, k) for i, panel in enumerate(trial.panels) for k in range(len(panel.series))]
    height = _EDGE_PX + len(trial.panels) * (_STRIP_PX + _GAP_PX)
    return {"data": traces, "layout": {t: _timeline_layout(trial, x_axis, t) for t in style.THEMES}, "height": height}


def _series(panel: Panel, i: int, k: int) -> Json:
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


def _timeline_layout(trial: TimelineTrial, x_axis: str, theme: str) -> Json:
    layout = style.base(theme)
    layout |= {
        "margin": {"l": 56, "r": 16, "t": 52, "b": 60},
        "xaxis": {
            "title": style.axis_title(x_axis),
            "rangemode": "tozero",
            **style.axis(theme),
            "anchor": _last_axis(trial),
        },
        "annotations": [],
        "hovermode": "closest",
    }
    strips = len(trial.panels)
    for i, panel in enumerate(trial.panels):
        low, high = _strip(i, strips)
        axis: Json = {"domain": [low, high], "rangemode": "tozero", "nticks": 4, **style.axis(theme)}
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
    text = style.safe(panel.title)
    if 1 < len(panel.series) <= len(style.DASH_NAMES):
        named = zip(panel.series, style.DASH_NAMES, strict=False)
        lines = ", ".join(f"{style.safe(series.name)} {dash}" for series, dash in named)
        text += f'<br><span style="font-size:12px;color:{style.MUTED[theme]}">{lines}</span>'
    where = {"xref": "paper", "yref": "paper", "x": 0, "xanchor": "left", "y": high, "yanchor": "bottom"}
    return {**where, "text": text, "align": "left", "showarrow": False, "font": {"color": style.INK[theme]}}
