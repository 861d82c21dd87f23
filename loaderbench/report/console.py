"""The summary in a terminal, or as plain aligned lines where something else reads it."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from loaderbench.report.console_tables import MARKS, draw, say
from loaderbench.report.parts import Column, Fact, FailureGroup, Row, Table, Text
from loaderbench.report.readings import SAMPLES
from loaderbench.report.tree import ReportDocument

_MOST_CONFIGURATIONS = 5
_MOST_COLUMNS = 4  # measured ones; the page has them all
_MOST_RECOMMENDATIONS = 3
_LEGEND = {"best": "best", "tied": "tied with the best"}


def print_summary(document: ReportDocument, console: Console, *, report_path: str | Path | None = None) -> None:
    """The verdict, what proves it, what to change first, warnings, notes, and where the report lies.

    The proof is the five best configurations of a sweep, or where the step of a profiled loop goes.
    """
    say(console, document.verdict.headline.text, "bold")
    evidence = document.verdict.evidence
    for text in evidence[:1] if document.glance else evidence:  # the tables below it say the rest
        say(console, f"  {text.text}")
    state = "bold red" if document.state.tone == "bad" else "dim"
    say(console, f"  {document.verdict.confidence}; {document.state.label}", state)
    if document.ranking:
        _best(console, document.ranking, document.verdict.why_best)
    _glance(console, document.glance)
    _glance(console, document.apart_glance)
    advice = document.recommendations.cards if document.recommendations else ()
    _list(console, "Recommendations", [card.one_line for card in advice])
    _list(console, "Failures", [_failure(group) for group in document.failures])
    _list(console, "Warnings", [text.text for text in document.warnings], "yellow")
    _list(console, "Good to know", [text.text for text in document.notes], "dim")
    if report_path is not None:
        say(console)
        say(console, f"Report: {report_path}")


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


def _glance(console: Console, blocks: tuple[Table | Fact, ...]) -> None:
    """Tables with their captions, and facts as lines of their own."""
    before: Table | Fact | None = None
    for block in blocks:
        if isinstance(block, Table) or not isinstance(before, Fact):
            say(console)
        if isinstance(block, Table):
            say(console, block.caption, "bold")
            draw(console, block.columns, block.rows)
        else:
            say(console, f"{block.label}: {block.value.text}")
        before = block


def _best(console: Console, ranking: Table, why: Text | None) -> None:
    """The table, what its marks mean, and why the best is the best."""
    columns, rows = _cut(ranking)
    say(console)
    draw(console, columns, rows)
    marks = {row.mark for row in rows}
    if legend := [f"{MARKS[mark]} {said}" for mark, said in _LEGEND.items() if mark in marks]:
        say(console, "   ".join(legend), "dim")
    if why is not None and why.text:
        say(console, f"Why this one: {why.text}")


def _cut(ranking: Table) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
    """The best and the first others by rank, the columns of the configuration and the first of what was measured."""
    first = next((i for i, c in enumerate(ranking.columns) if c.label == SAMPLES.label), 0)
    end = first + _MOST_COLUMNS
    best_first = sorted(ranking.rows, key=lambda row: row.mark != "best")
    rows = tuple(Row(row.cells[:end], mark=row.mark) for row in best_first[:_MOST_CONFIGURATIONS])
    return ranking.columns[:end], rows
