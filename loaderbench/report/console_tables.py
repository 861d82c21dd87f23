"""Lines and tables for a terminal, or for whatever reads the output instead."""

from __future__ import annotations

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text as RichText

from loaderbench.report.parts import Column, Row, Text, Value

MARKS = {"best": "\u2605", "tied": "="}
_STRONG = ("best", "total")
_PLAIN = {
    "\u2605": "*", "\u2013": "-", "\u2212": "-", "\u00d7": "x", "\u2026": "...", "\u2192": "->", "\u00b5": "u",
    "\u2019": "'",
}  # fmt: skip


def draw(console: Console, columns: tuple[Column, ...], rows: tuple[Row, ...]) -> None:
    """A table that fits where it goes."""
    table = _rich_table if console.is_terminal else _plain_table
    table(console, columns, rows)


def _rich_table(console: Console, columns: tuple[Column, ...], rows: tuple[Row, ...]) -> None:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("")
    for column in columns:
        table.add_column(
            RichText(_fit(column.label, console)), justify="right" if column.numeric else "left", no_wrap=True
        )
    for row in rows:
        style = "bold" if row.mark in _STRONG else None
        cells = (RichText(_fit(text, console)) for text in (MARKS.get(row.mark, ""), *_texts(row)))
        table.add_row(*cells, style=style)
    console.print(table)


def _texts(row: Row) -> list[str]:
    """A row's texts, those of a part of the row above set in."""
    first, *others = map(_short, row.cells)
    return [f"{'  ' * row.depth}{first}", *others]


def _short(cell: Text) -> str:
    """A cell's text; why something is missing has no room in a table."""
    return cell.main if isinstance(cell, Value) and cell.missing else cell.text


def _plain_table(console: Console, columns: tuple[Column, ...], rows: tuple[Row, ...]) -> None:
    """A row is one line whatever its width, so that it can be read by eye and by `awk` alike."""
    marks = [_fit(MARKS.get(row.mark, " "), console) for row in rows]
    lines = [[_fit(column.label, console) for column in columns]]
    lines += [[_fit(text, console) for text in _texts(row)] for row in rows]
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(columns))]
    for mark, line in zip([" ", *marks], lines, strict=True):
        cells = [_pad(x, w, column.numeric) for x, w, column in zip(line, widths, columns, strict=True)]
        say(console, f"{mark} {'  '.join(cells)}".rstrip())


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def say(console: Console, text: str = "", style: str = "") -> None:
    """One line; it wraps in a terminal, and is left whole for a program that reads it."""
    console.print(RichText(_fit(text, console), style=style), soft_wrap=not console.is_terminal)


def _fit(text: str, console: Console) -> str:
    """The text in letters that the output can hold: a log may know ASCII only."""
    try:
        text.encode(console.encoding)
    except UnicodeEncodeError:
        for sign, plain in _PLAIN.items():
            text = text.replace(sign, plain)
        return text.encode(console.encoding, "replace").decode(console.encoding)
    return text
