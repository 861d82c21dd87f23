"""The summary in a terminal, or as plain aligned lines where something else reads it."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text as RichText

from loaderbench.report.parts import Column, FailureGroup, ReportDocument, Row, Table, Text, Value
from loaderbench.report.readings import SAMPLES

_MOST_CONFIGURATIONS = 5
_MOST_COLUMNS = 4  # measured ones; the page has them all
_MOST_RECOMMENDATIONS = 3
_LEGEND = {"best": "best", "tied": "tied with the best"}
_MARKS = {"best": "\u2605", "tied": "="}
_PLAIN = {"\u2605": "*", "\u2013": "-", "\u2212": "-", "\u00d7": "x", "\u2026": "...", "\u2192": "->", "\u00b5": "u"}


def print_summary(document: ReportDocument, console: Console, *, report_path: str | Path | None = None) -> None:
    """The verdict, the five best configurations, what to change first, the warnings, and where the report lies."""
    _line(console, document.verdict.headline.text, "bold")
    for text in document.verdict.evidence:
        _line(console, f"  {text.text}")
    state = "bold red" if document.state.tone == "bad" else "dim"
    _line(console, f"  {document.verdict.confidence}; {document.state.label}", state)
    if document.ranking:
        _best(console, document.ranking, document.verdict.why_best)
    _list(console, "Recommendations", [card.one_line for card in document.recommendations.cards])
    _list(console, "Failures", [_failure(group) for group in document.failures])
    _list(console, "Warnings", [text.text for text in document.warnings], "yellow")
    if report_path is not None:
        _line(console)
        _line(console, f"Report: {report_path}")


def _failure(group: FailureGroup) -> str:
    """What ended the trials, what to do, and where to read on: a line for each that is known."""
    log = f"log: {group.log.text}" if group.log else ""
    what = [f"{group.kind.text} ({group.count}): {group.last_words.text or group.hint.text}"]
    return "\n    ".join(what + [text for text in (group.hint.text, log) if text and text not in what[0]])


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


def _best(console: Console, ranking: Table, why: Text | None) -> None:
    """The table, what its marks mean, and why the best is the best."""
    columns, rows = _cut(ranking)
    _line(console)
    draw = _rich_table if console.is_terminal else _plain_table
    draw(console, columns, rows)
    marks = {row.mark for row in rows}
    if legend := [f"{_MARKS[mark]} {said}" for mark, said in _LEGEND.items() if mark in marks]:
        _line(console, "   ".join(legend), "dim")
    if why is not None and why.text:
        _line(console, f"Why this one: {why.text}")


def _rich_table(console: Console, columns: tuple[Column, ...], rows: tuple[Row, ...]) -> None:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("")
    for column in columns:
        table.add_column(
            RichText(_fit(column.label, console)), justify="right" if column.numeric else "left", no_wrap=True
        )
    for row in rows:
        style = "bold" if row.mark == "best" else None
        cells = (RichText(_fit(text, console)) for text in (_MARKS.get(row.mark, ""), *map(_short, row.cells)))
        table.add_row(*cells, style=style)
    console.print(table)


def _cut(ranking: Table) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
    """The best and the first others by rank, the columns of the configuration and the first of what was measured."""
    first = next((i for i, c in enumerate(ranking.columns) if c.label == SAMPLES.label), 0)
    end = first + _MOST_COLUMNS
    best_first = sorted(ranking.rows, key=lambda row: row.mark != "best")
    rows = tuple(Row(row.cells[:end], mark=row.mark) for row in best_first[:_MOST_CONFIGURATIONS])
    return ranking.columns[:end], rows


def _short(cell: Text) -> str:
    """A cell's text; why something is missing has no room in a table."""
    return cell.main if isinstance(cell, Value) and cell.missing else cell.text


def _plain_table(console: Console, columns: tuple[Column, ...], rows: tuple[Row, ...]) -> None:
    """A row is one line whatever its width, so that it can be read by eye and by `awk` alike."""
    marks = [_fit(_MARKS.get(row.mark, " "), console) for row in rows]
    lines = [[_fit(column.label, console) for column in columns]]
    lines += [[_fit(_short(cell), console) for cell in row.cells] for row in rows]
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
