"""How every chart looks, in light and in dark: inks, dashes, shapes, axes."""

from __future__ import annotations

import html
from typing import Any

Json = dict[str, Any]

# Okabe and Ito's colours without the ones that vanish on the paper: told apart with any colour vision.
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


def base(theme: str) -> Json:
    """What the layouts of a theme share."""
    return {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK[theme]},
        "colorway": LINES[theme],
        "separators": ".,",
        "dragmode": False,
        "hoverlabel": {"bgcolor": PAPER[theme], "bordercolor": MUTED[theme], "font": {"color": INK[theme]}},
    }


def axis(theme: str) -> Json:
    """An axis that a finger scrolling the page does not zoom."""
    colours = {"gridcolor": GRID[theme], "zerolinecolor": GRID[theme], "linecolor": MUTED[theme]}
    return {
        **colours,
        "tickfont": {"color": MUTED[theme]},
        "separatethousands": True,
        "fixedrange": True,
        "automargin": True,
    }


def axis_title(text: str) -> Json:
    """The title of an axis."""
    return {"text": safe(text), "font": {"size": 13}, "standoff": 8}


def safe(text: str) -> str:
    """Plotly reads its strings as a little HTML; nothing that came from outside may be that."""
    return html.escape(text, quote=False)
