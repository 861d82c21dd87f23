"""Two runs compared, and gates, for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from loaderbench.records import Comparison, GateResult, Interval, MetricChange
from loaderbench.report import numbers, words
from loaderbench.report.markdown import inline, table
from loaderbench.report.model import Column, Row, Table, Text, Value
from loaderbench.report.terminal import draw, say

_MOST_ROWS = 30
_MARKS = {"passed": "ok", "failed": "FAILED", "inconclusive": "inconclusive"}


def comparison_table(found: Comparison) -> Table:
    """A row for each configuration that both runs measured: samples/s, data wait, and their changes."""
    rates = [c for c in found.metrics if c.metric == "samples_per_s"]
    shares = [c for c in found.metrics if c.metric == "data_wait_share"]
    columns = (
        Column("Configuration"),
        *(Column(name, numeric=True) for name in ("Samples/s, before", "after", "change")),
        Column("Outcome"),
        *(Column(name, numeric=True) for name in ("Data wait, before", "after", "change, pp")),
    )
    rows = tuple(_row(rate, share, found) for rate, share in zip(rates, shares, strict=True))
    left = len(rows) - _MOST_ROWS
    note = f"{numbers.count(left, 'more configuration')} measured in both runs." if left > 0 else None
    return Table("Configurations measured in both runs", columns, rows[:_MOST_ROWS], note)


def _row(rate: MetricChange, share: MetricChange, found: Comparison) -> Row:
    cells = (
        words.configuration(rate.config),
        numbers.interval(rate.before),
        numbers.interval(rate.after),
        _ratio(rate.change),
        Text(rate.outcome),
        numbers.share(share.before),
        numbers.share(share.after),
        _points(share.change),
    )
    return Row(cells, mark="best" if rate.config == found.config else "")


def _ratio(change: Interval | None) -> Text:
    return numbers.gain(change.est, change.lo, change.hi) if change else numbers.missing()


def _points(change: Interval | None) -> Value:
    return numbers.interval(numbers.scaled(change, 100), digits=2) if change else numbers.missing()


def print_comparison(console: Console, found: Comparison, gates: Sequence[GateResult]) -> None:
    """The headline, reasons for doubt, the table, and the gates."""
    say(console, words.sentence(found.headline).text, "bold")
    for reason in found.reasons:
        say(console, f"  {words.sentence(reason).text}")
    if found.metrics:
        shown = comparison_table(found)
        say(console)
        draw(console, shown.columns, shown.rows)
    print_gates(console, gates)


def print_gates(console: Console, gates: Sequence[GateResult]) -> None:
    """A line for each gate."""
    if gates:
        say(console)
        say(console, "Gates", "bold")
    for result in gates:
        said = f"{_MARKS[result.outcome]}{' (warning only)' if result.gate.warns_only else ''}"
        style = "" if result.outcome == "passed" else "yellow" if result.gate.warns_only else "red"
        say(console, f"  {result.gate.text}: {said}: {words.sentence(result.said).text}", style)


def comparison_markdown(found: Comparison, gates: Sequence[GateResult]) -> str:
    """The same for a pull request."""
    parts = [f"## {inline(words.sentence(found.headline).text)}"]
    parts += [f"- {inline(words.sentence(reason).text)}" for reason in found.reasons]
    if found.metrics:
        shown = comparison_table(found)
        header = [inline(column.label) for column in shown.columns]
        rows = [[inline(cell.text) for cell in row.cells] for row in shown.rows]
        parts.append(table(header, [column.numeric for column in shown.columns], rows))
    return "\n\n".join(filter(None, [*parts, gates_markdown(gates)])) + "\n"


def gates_markdown(gates: Sequence[GateResult]) -> str:
    """The gates as a table; nothing where there are none."""
    if not gates:
        return ""
    rows = [
        [inline(g.gate.text), f"{_MARKS[g.outcome]}{' (warning only)' if g.gate.warns_only else ''}", inline(g.said)]
        for g in gates
    ]
    return "### Gates\n\n" + table(["Gate", "Outcome", "Measured"], [False, False, False], rows)
