"""The heat map as a bitmap, for tools that cannot show HTML."""

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
_SIZE, _HIGH, _PAD, _MARGIN = 26, 60, 18, 24  # pixels, for screens with a pixel ratio of 2


@dataclass(frozen=True)
class _Cell:
    """One cell of the table. The best configuration is `framed`."""

    text: str
    paper: Color = _PAPER
    framed: bool = False


def heat_map_pictures(document: Document) -> Iterator[tuple[HeatMetric, Image]]:
    """Each metric of the heat map with its bitmap; none if the report has no heat map."""
    heat_map = document.find(HeatMap)
    if heat_map is not None:
        yield from ((metric, _picture(heat_map, number)) for number, metric in enumerate(heat_map.metrics))


def _picture(heat_map: HeatMap, number: int) -> Image:
    """All panels, stacked vertically."""
    metric = heat_map.metrics[number]
    legend = f"{metric.label}: {metric.low} to {metric.high}"
    if "best" in heat_map.legend:
        legend += ". Framed: best config"
    lines: list[list[_Cell]] = [[_Cell(legend)]]
    for facet in heat_map.facets:
        lines += [[_Cell(facet.title.text)]] if facet.title else []
        lines += _panel(heat_map, facet, number)
    return _drawn(lines)


def _panel(heat_map: HeatMap, facet: Facet, number: int) -> list[list[_Cell]]:
    down = f"{heat_map.y_axis.text} \\ " if heat_map.y_axis else ""
    head = [_Cell(f"{down}{heat_map.x_axis.text}"), *(_Cell(label.text) for label in heat_map.x_labels)]
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
