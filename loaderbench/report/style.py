"""Styles of charts and the heat map in light and dark themes: colors, dashes, symbols and axes."""

from __future__ import annotations

import html
from collections.abc import Callable

from loaderbench.report.model import Json

Color = tuple[int, int, int]

# Okabe and Ito's colors, distinguishable with any color vision, without those too pale for the background.
LINES = {
    "light": ["#0b63a5", "#b34a00", "#00735a", "#9a4b82", "#5d5d5d", "#7a6400", "#3f3fbf", "#a3202a"],
    "dark": ["#6bb6f2", "#f0965a", "#4cc9a3", "#e09cc6", "#b8b8b8", "#e6d04d", "#a5a5ff", "#ff8a8a"],
}
INK = {"light": "#1f2328", "dark": "#e3e6ea"}
MUTED = {"light": "#59636e", "dark": "#a0a8b1"}
GRID = {"light": "#e4e7eb", "dark": "#30363d"}
PAPER = {"light": "#ffffff", "dark": "#161b22"}
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down", "cross")
PAGE = {"light": "#ffffff", "dark": "#0f1318"}  # `--paper` of page.css
THEMES = ("light", "dark")
DASH_NAMES = ("solid", "dashed", "dotted", "dash-dotted")
# cividis (Nunez, Anderton and Renslow 2018, doi 10.1371/journal.pone.0199239) at eleven equal steps: it reads the
# same with and without color vision deficiency, and its lightness rises evenly.
_CIVIDIS = (
    (0, 34, 78), (18, 53, 112), (59, 73, 108), (87, 93, 109), (112, 113, 115), (138, 134, 120),
    (165, 156, 116), (195, 179, 105), (225, 204, 85), (247, 225, 67), (254, 232, 56),
)  # fmt: skip
LEGEND: Json = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}


def figure(traces: list[Json], layout: Callable[[str], Json], height: int) -> Json:
    """A Plotly figure: its traces, and a layout for each theme, to switch themes without new data.

    Figures are plain dicts, because importing plotly takes longer than drawing the report.
    """
    return {"data": traces, "layout": {theme: _base(theme) | layout(theme) for theme in THEMES}, "height": height}


def _base(theme: str) -> Json:
    """Layout options shared by all figures of a theme."""
    return {
        "hovermode": "closest",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK[theme]},
        "colorway": LINES[theme],
        "separators": ".,",
        "dragmode": False,
        "hoverlabel": {"bgcolor": PAPER[theme], "bordercolor": MUTED[theme], "font": {"color": INK[theme]}},
    }


def axis(theme: str) -> Json:
    """An axis that does not zoom when a finger scrolls over it."""
    colors = {"gridcolor": GRID[theme], "zerolinecolor": GRID[theme], "linecolor": MUTED[theme]}
    return {
        **colors,
        "tickfont": {"color": MUTED[theme]},
        "separatethousands": True,
        "fixedrange": True,
        "automargin": True,
    }


def axis_title(text: str) -> Json:
    """The title of an axis."""
    return {"text": safe(text), "font": {"size": 13}, "standoff": 8}


def safe(text: str) -> str:
    """Escape text from outside, because Plotly interprets some HTML."""
    return html.escape(text, quote=False)


def cividis(place: float) -> Color:
    """The color at `place`, 0 to 1, interpolated between the two nearest steps."""
    at = min(max(place, 0.0), 1.0) * (len(_CIVIDIS) - 1)
    low = min(int(at), len(_CIVIDIS) - 2)
    first, second = _CIVIDIS[low], _CIVIDIS[low + 1]
    mixed = [round(a + (b - a) * (at - low)) for a, b in zip(first, second, strict=True)]
    return mixed[0], mixed[1], mixed[2]


def ink(paper: Color) -> Color:
    """Black or white, whichever has more contrast. One of the two always reaches 4.58 to 1."""
    black, white = (0, 0, 0), (255, 255, 255)
    return black if contrast(black, paper) >= contrast(white, paper) else white


def contrast(one: Color, other: Color) -> float:
    """The contrast ratio of WCAG 2.2, 1 to 21."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(color: Color) -> float:
    red, green, blue = (_linear(channel / 255) for channel in color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def css(color: Color) -> str:
    """The color as `#rrggbb`."""
    return "#{:02x}{:02x}{:02x}".format(*color)


def cell_style(place: float | None) -> str:
    """CSS for the background and text color of a heat map's cell; empty for a cell without a reading."""
    if place is None:
        return ""
    paper = cividis(place)
    return f"background-color:{css(paper)};color:{css(ink(paper))}"


def gradient() -> str:
    """The complete color scale, as CSS."""
    return f"linear-gradient(to right, {', '.join(css(color) for color in _CIVIDIS)})"
