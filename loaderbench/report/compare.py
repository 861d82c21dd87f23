"""Comparisons of two runs or versions, and gates, for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from loaderbench.records import Comparison, GateResult
from loaderbench.report import words
from loaderbench.report.markdown import filled, inline
from loaderbench.report.model import Fact, Table
from loaderbench.report.sections.comparison import comparison_table, gates_table, marked
from loaderbench.report.terminal import draw, say


def print_comparison(
    console: Console, comparison: Comparison, gates: Sequence[GateResult], facts: Sequence[Fact] = ()
) -> None:
    """Print the headline, reasons for doubt, `facts` about the compared versions, the table, and the gates."""
    say(console, words.sentence(comparison.headline).text, "bold")
    for reason in comparison.reasons:
        say(console, f"  {words.sentence(reason).text}")
    for fact in facts:
        say(console, f"  {fact.label:<8}  {fact.value.text}")
    if comparison.metrics:
        shown = comparison_table(comparison)
        say(console)
        draw(console, shown.columns, shown.rows)
    print_gates(console, gates)


def print_gates(console: Console, gates: Sequence[GateResult]) -> None:
    """Print a line for each gate."""
    if gates:
        say(console)
        say(console, "Gates", "bold")
    for result in gates:
        outcome = marked(result)
        style = "" if result.outcome == "passed" else "yellow" if result.gate.warns_only else "red"
        say(console, f"  {result.gate.text}: {outcome}: {words.sentence(result.said).text}", style)


def comparison_markdown(comparison: Comparison, gates: Sequence[GateResult], facts: Sequence[Fact] = ()) -> str:
    """The comparison as Markdown, for a pull request."""
    parts = [f"## {inline(words.sentence(comparison.headline).text)}"]
    remarks = [words.sentence(reason).text for reason in comparison.reasons]
    remarks += [f"{fact.label}: {fact.value.text}" for fact in facts]
    parts += ["\n".join(f"- {inline(text)}" for text in remarks)] if remarks else []
    if comparison.metrics:
        parts.append(_table(comparison_table(comparison)))
    return "\n\n".join(filter(None, [*parts, gates_markdown(gates)])) + "\n"


def gates_markdown(gates: Sequence[GateResult]) -> str:
    """The gates as a table; empty if there are none."""
    return f"### Gates\n\n{_table(gates_table(gates))}" if gates else ""


def _table(found: Table) -> str:
    return filled(found, [[inline(cell.text) for cell in row.cells] for row in found.rows])
