"""How times are distributed, as a table: one row for each kind of time, all in milliseconds."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.records import Spread
from loaderbench.report import numbers, stacks
from loaderbench.report.parts import Column, Row, Table, Text

ACCURACY = Text("Quantiles are right within 5 %.")
_TIMES = ("Mean", "p50", "p95", "p99", "Longest")


def table(caption: str, one: str, many: str, found: Sequence[tuple[str, Spread]]) -> Table:
    """A row for each spread over what is called `one` and `many`."""
    columns = (Column("Time"), *(Column(name, numeric=True) for name in _TIMES))
    over = numbers.count(max(spread.count for _, spread in found), one, many)
    return Table(f"{caption}, in ms, over {over}", columns, tuple(_row(name, spread) for name, spread in found))


def _row(name: str, spread: Spread) -> Row:
    times = (spread.mean_s, spread.p50_s, spread.p95_s, spread.p99_s, spread.max_s)
    return Row((Text(name), *stacks.milliseconds(times)))
