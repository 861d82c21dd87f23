"""The colour scale of the heat map, and ink that can be read on each of its colours."""

from __future__ import annotations

# cividis (Nunez, Anderton and Renslow 2018, doi 10.1371/journal.pone.0199239) at eleven equal steps: it reads the
# same with and without colour vision deficiency, and its lightness rises evenly.
_CIVIDIS = (
    (0, 34, 78), (18, 53, 112), (59, 73, 108), (87, 93, 109), (112, 113, 115), (138, 134, 120),
    (165, 156, 116), (195, 179, 105), (225, 204, 85), (247, 225, 67), (254, 232, 56),
)  # fmt: skip

Colour = tuple[int, int, int]


def cividis(place: float) -> Colour:
    """The colour at `place`, 0 to 1, between the two nearest steps."""
    at = min(max(place, 0.0), 1.0) * (len(_CIVIDIS) - 1)
    low = min(int(at), len(_CIVIDIS) - 2)
    first, second = _CIVIDIS[low], _CIVIDIS[low + 1]
    mixed = [round(a + (b - a) * (at - low)) for a, b in zip(first, second, strict=True)]
    return mixed[0], mixed[1], mixed[2]


def ink(paper: Colour) -> Colour:
    """Black or white, whichever contrasts more: one of the two always reaches 4.58 to 1."""
    black, white = (0, 0, 0), (255, 255, 255)
    return black if contrast(black, paper) >= contrast(white, paper) else white


def contrast(one: Colour, other: Colour) -> float:
    """The contrast ratio of WCAG 2.2, 1 to 21."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Colour) -> float:
    red, green, blue = (_linear(channel / 255) for channel in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def css(colour: Colour) -> str:
    """`#rrggbb`."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def cell_style(place: float | None) -> str:
    """The paper and ink of a heat map's cell, as CSS; nothing for one without a reading."""
    if place is None:
        return ""
    paper = cividis(place)
    return f"background-color:{css(paper)};color:{css(ink(paper))}"


def gradient() -> str:
    """The whole scale, as CSS."""
    return f"linear-gradient(to right, {', '.join(css(colour) for colour in _CIVIDIS)})"
