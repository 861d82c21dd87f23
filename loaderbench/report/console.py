"""The summary in a terminal, or as plain aligned lines where something else reads it."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text as RichText

from loaderbench.report.parts import Column, ReportDocument, Row, Table
from loaderbench.report.readings import SAMPLES

_MOST_CONFIGURATIONS = 5
_MOST_COLUMNS = 4  # measured ones; the page has them all
_MOST_RECOMMENDATIONS = 3
_MARKS = {"best": "\u2605", "tied": "="}
_PLAIN = {"\u2605": "*", "\u2013": "-", "\u2212": "-", "\u00d7": "x", "\u2026": "...", "\u2192": "->", "\u00b5": "u"}


def print_summary(document: ReportDocument, console: Console, *, report_path: str | Path | None = None) -> None:
    """The verdict, the five best configurations, what to change first, the warnings, and where the report lies."""
    _line(console, document.verdict.headline.text, "bold")
    for text in document.verdict.evidence:
        _line(console, f"  {text.text}")
    _line(console, f"  {document.verdict.confidence}; {document.state.label}", "dim")
    if document.ranking:
        _best(console, document.ranking)
    _list(console, "Recommendations", [card.one_line for card in document.recommendations.cards])
    if document.failures:
        _list(console, "Failures", [f"{g.kind.text} ({g.count}): {g.hint.text}" for g in document.failures])
    _list(console, "Warnings", [text.text for text in document.warnings], "yellow")
    if report_path is not None:
        _line(console)
        _line(console, f"Report: {report_path}")


def _list(console: Console, title: str, lines: list[str], style: str = "") -> None:
    if not lines:
        return
    _line(console)
    _line(console, title, "bold")
    for line in lines[:_MOST_RECOMMENDATIONS]:
        _line(console, f"  {line}", style)
    left = len(lines) - _MOST_RECOMMENDATIONS
    if left > 0:
        _line(console, f"  and {left} more in the report", "dim")


def _best(console: Console, ranking: Table) -> None:
    """The table; a row is one line whatever its width, so that it can be read by eye and by `awk` alike."""
    columns, rows = _cut(ranking)
    _line(console)
    if not console.is_terminal:
        _plain_table(console, columns, rows)
        return
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("")
    for column in columns:
        table.add_column(column.label, justify="right" if column.numeric else "left", no_wrap=True)
    for row in rows:
        style = "bold" if row.mark == "best" else None
        table.add_row(_MARKS.get(row.mark, ""), *(RichText(cell.text) for cell in row.cells), style=style)
    console.print(table)


def _cut(ranking: Table) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
    """The first rows, the columns of the configuration and the first of what was measured."""
    first = next((i for i, c in enumerate(ranking.columns) if c.label == SAMPLES.label), 0)
    end = first + _MOST_COLUMNS
    rows = tuple(Row(row.cells[:end], mark=row.mark) for row in ranking.rows[:_MOST_CONFIGURATIONS])
    return ranking.columns[:end], rows


def _plain_table(console: Console, columns: tuple[Column, ...], rows: tuple[Row, ...]) -> None:
    marks = [_fit(_MARKS.get(row.mark, " "), console) for row in rows]
    lines = [[_fit(column.label, console) for column in columns]]
    lines += [[_fit(cell.text, console) for cell in row.cells] for row in rows]
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(columns))]
    for mark, line in zip([" ", *marks], lines, strict=True):
        cells = [_pad(x, w, column.numeric) for x, w, column in zip(line, widths, columns, strict=True)]
        _line(console, f"{mark} {'  '.join(cells)}".rstrip())


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def _line(console: Console, text: str = "", style: str = "") -> None:
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
