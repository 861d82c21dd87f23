"""What a notebook shows below a cell: the verdict and its tables, without scripts and in the notebook's own colours."""

from __future__ import annotations

from loaderbench.report.html import environment
from loaderbench.report.parts import Fact, Row, Table
from loaderbench.report.tree import ReportDocument

_MOST_ROWS = 12  # of one table: the page has them all
_MOST_CARDS = 3


def notebook_html(document: ReportDocument) -> str:
    """A small piece of HTML in which every string is text; styles are inline, since some notebooks drop all others."""
    shown = document.glance or ((document.ranking,) if document.ranking else ())
    return environment().get_template("notebook.html").render(
        document=document,
        tables=[_shortened(block) for block in shown if isinstance(block, Table)],
        advice=document.recommendations.cards[:_MOST_CARDS] if document.recommendations else (),
        facts=[block for block in shown if isinstance(block, Fact)],
    )  # fmt: skip


def _shortened(table: Table) -> Table:
    rows: tuple[Row, ...] = table.rows
    if len(rows) <= _MOST_ROWS:
        return table
    return Table(f"{table.caption}: the first {_MOST_ROWS} of {len(rows)}", table.columns, rows[:_MOST_ROWS])
