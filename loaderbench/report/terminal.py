"""The summary in a terminal, or as plain aligned lines where something else reads it."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text as RichText

from loaderbench.report.metrics import SAMPLES
from loaderbench.report.model import Column, Document, Fact, Glance, Row, Table, Text, Value
from loaderbench.report.sections.failures import FailureGroup, Failures
from loaderbench.report.sections.recommendations import Cards
from loaderbench.report.sections.sweep import Ranking
from loaderbench.report.sections.verdict import Finding

_MOST_CONFIGURATIONS = 5
_MOST_COLUMNS = 4  # measured ones; the page has them all
_MOST_RECOMMENDATIONS = 3
_LEGEND = {"best": "best", "tied": "tied with the best"}
_MARKS = {"best": "\u2605", "tied": "="}
_STRONG = ("best", "total")
_PLAIN = {
    "\u2605": "*", "\u2013": "-", "\u2212": "-", "\u00d7": "x", "\u2026": "...", "\u2192": "->", "\u00b5": "u",
    "\u2019": "'",
}  # fmt: skip


def print_summary(document: Document, console: Console, *, report_path: str | Path | None = None) -> None:
    """The verdict, what proves it, what to change first, warnings, notes, and where the report lies.

    The proof is what the sections show at a glance: the five best configurations, or where the step of a loop goes.
    """
    glance = [block for section in document.sections for block in section.glance]
    _verdict(console, document, in_full=not any(section.of_choice and section.glance for section in document.sections))
    _at_a_glance(console, glance)
    cards, failures = document.find(Cards), document.find(Failures)
    _list(console, "Recommendations", [card.one_line for card in cards.cards] if cards else [])
    _list(console, "Failures", [_failure(group) for group in failures.groups] if failures else [])
    _list(console, "Warnings", [text.text for text in document.warnings], "yellow")
    _list(console, "Good to know", [text.text for text in document.notes], "dim")
    if report_path is not None:
        say(console)
        say(console, f"Report: {report_path}")


def _verdict(console: Console, document: Document, *, in_full: bool) -> None:
    """Its first evidence alone where the tables below it say the rest."""
    for found in document.all(Finding):
        say(console, found.headline.text, "bold")
        for text in found.evidence if in_full else found.evidence[:1]:
            say(console, f"  {text.text}")
        state = "bold red" if document.state.tone == "bad" else "dim"
        say(console, f"  {found.confidence}; {document.state.label}", state)


def _failure(group: FailureGroup) -> str:
    """What ended the trials, what to do, and where to read on: a line for each that is known."""
    log = f"log: {group.log.text}" if group.log else ""
    what = [f"{group.kind.text} ({group.count}): {group.last_words.text or group.hint.text}"]
    return "\n    ".join(what + [text for text in (group.hint.text, log) if text and text not in what[0]])


def _list(console: Console, title: str, lines: list[str], style: str = "") -> None:
    if not lines:
        return
    say(console)
    say(console, title, "bold")
    for line in lines[:_MOST_RECOMMENDATIONS]:
        say(console, f"  {line}", style)
    left = len(lines) - _MOST_RECOMMENDATIONS
    if left > 0:
        say(console, f"  and {left} more in the report", "dim")


def _at_a_glance(console: Console, blocks: list[Glance]) -> None:
    """Tables with their captions, and facts as lines of their own."""
    before: Glance | None = None
    for block in blocks:
        if isinstance(block, Table) or not isinstance(before, Fact):
            say(console)
        if isinstance(block, Ranking):
            _best(console, block)
        elif isinstance(block, Table):
            say(console, block.caption, "bold")
            draw(console, block.columns, block.rows)
        else:
            say(console, f"{block.label}: {block.value.text}")
        before = block


def _best(console: Console, ranking: Ranking) -> None:
    """The table, what its marks mean, and why the best is the best."""
    columns, rows = _cut(ranking)
    draw(console, columns, rows)
    marks = {row.mark for row in rows}
    if legend := [f"{_MARKS[mark]} {said}" for mark, said in _LEGEND.items() if mark in marks]:
        say(console, "   ".join(legend), "dim")
    if ranking.why is not None and ranking.why.text:
        say(console, f"Why this one: {ranking.why.text}")


def _cut(ranking: Table) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
    """The best and the first others by rank, the columns of the configuration and the first of what was measured."""
    first = next((i for i, c in enumerate(ranking.columns) if c.label == SAMPLES.label), 0)
    end = first + _MOST_COLUMNS
    best_first = sorted(ranking.rows, key=lambda row: row.mark != "best")
    rows = tuple(Row(row.cells[:end], mark=row.mark) for row in best_first[:_MOST_CONFIGURATIONS])
    return ranking.columns[:end], rows


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
        cells = (RichText(_fit(text, console)) for text in (_MARKS.get(row.mark, ""), *_texts(row)))
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
    marks = [_fit(_MARKS.get(row.mark, " "), console) for row in rows]
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
