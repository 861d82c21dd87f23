"""Configurations that an adaptive sweep stopped measuring: after how many rounds, and why."""

from __future__ import annotations

from loaderbench.records import Dropped
from loaderbench.report import axes, numbers, words
from loaderbench.report.model import Column, Details, Paragraph, Row, Section, Table, Text, Value
from loaderbench.report.view import MOST_ROWS, View

_METHOD = (
    "A config was dropped after a round if it was significantly slower than the fastest, corrected for the number of "
    "rounds and configs."
)


def section(view: View) -> Section | None:
    """A table with a row for each configuration, those measured in the most rounds first."""
    dropped_configs = sorted(view.run.dropped, key=lambda dropped: -dropped.rounds)
    if not dropped_configs:
        return None
    names = axes.columns(view.run)
    columns = (*axes.headings(names), Column("Rounds", numeric=True), Column("Reason"))
    rows = tuple(_row(view, dropped, names) for dropped in dropped_configs[:MOST_ROWS])
    left = len(dropped_configs) - len(rows)
    note = f"{numbers.count(left, 'more config')} in run.json." if left else None
    table = Table("Dropped configs", columns, rows, note, sortable=True)
    blocks = (Paragraph(Text(_METHOD), "small"), Details("All dropped configs", (table,), len(rows)))
    return Section(id="dropped", title="Dropped configs", blocks=blocks)


def _row(view: View, dropped: Dropped, names: list[str]) -> Row:
    rounds = Value(str(dropped.rounds), sort=dropped.rounds)
    return Row((*axes.cells(view.run, dropped.config, names), rounds, words.sentence(dropped.why)))
