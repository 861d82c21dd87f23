"""The heat map as a picture, for tools that show no HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loaderbench.report import style
from loaderbench.report.model import Document
from loaderbench.report.sections.heat_map import Facet, HeatCell, HeatMap, HeatMetric
from loaderbench.report.style import Color

if TYPE_CHECKING:
    from PIL.Image import Image

_PAPER, _INK, _MISSING, _FRAME = (255, 255, 255), (31, 35, 40), (228, 231, 235), (179, 74, 0)
_SIZE, _HIGH, _PAD, _MARGIN = 26, 60, 18, 24  # pixels, for screens with two per point


@dataclass(frozen=True)
class _Cell:
    """One cell of the table; the best configuration is `framed`."""

    text: str
    paper: Color = _PAPER
    framed: bool = False


def heat_map_pictures(document: Document) -> Iterator[tuple[HeatMetric, Image]]:
    """Each metric of the heat map with its picture; none where the report has no heat map."""
    found = document.find(HeatMap)
    if found is not None:
        yield from ((metric, _picture(found, number)) for number, metric in enumerate(found.metrics))


def _picture(found: HeatMap, number: int) -> Image:
    """The panels one below the other."""
    metric = found.metrics[number]
    legend = f"{metric.label}: {metric.low} to {metric.high}"
    if "best" in found.legend:
        legend += ". Framed: best config"
    lines: list[list[_Cell]] = [[_Cell(legend)]]
    for facet in found.facets:
        lines += [[_Cell(facet.title.text)]] if facet.title else []
        lines += _panel(found, facet, number)
    return _drawn(lines)


def _panel(found: HeatMap, facet: Facet, number: int) -> list[list[_Cell]]:
    down = f"{found.y_axis.text} \\ " if found.y_axis else ""
    head = [_Cell(f"{down}{found.x_axis.text}"), *(_Cell(label.text) for label in found.x_labels)]
    return [head, *([_Cell(row.label.text), *(_cell(one, number) for one in row.cells)] for row in facet.rows)]


def _cell(cell: HeatCell, number: int) -> _Cell:
    reading = cell.readings[number]
    paper = _MISSING if reading.place is None else style.cividis(reading.place)
    return _Cell(reading.text, paper, cell.best)


def _drawn(lines: Sequence[Sequence[_Cell]]) -> Image:
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(_SIZE)
    tables = [line for line in lines if len(line) > 1]
    widths = [max(font.getlength(cell.text) for cell in column) + 2 * _PAD for column in zip(*tables, strict=True)]
    whole = max(sum(widths), *(font.getlength(line[0].text) + 2 * _PAD for line in lines if len(line) == 1))
    picture = Image.new("RGB", (round(whole) + 2 * _MARGIN, _HIGH * len(lines) + 2 * _MARGIN), _PAPER)
    draw = ImageDraw.Draw(picture)
    for row, line in enumerate(lines):
        left, top = float(_MARGIN), _MARGIN + row * _HIGH
        for cell, wide in zip(line, widths if len(line) > 1 else [whole], strict=True):
            frame = _FRAME if cell.framed else None
            draw.rectangle((left, top, left + wide - 2, top + _HIGH - 2), cell.paper, frame, width=6)
            at = (left + _PAD, top + _HIGH / 2)
            draw.text(at, cell.text, style.ink(cell.paper) if cell.paper != _PAPER else _INK, font, anchor="lm")
            left += wide
    return picture
