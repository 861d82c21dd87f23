"""Two runs or versions compared, and gates, for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from loaderbench.records import Comparison, GateResult
from loaderbench.report import words
from loaderbench.report.markdown import inline, table
from loaderbench.report.model import Fact
from loaderbench.report.sections.comparison import comparison_table, gates_table, marked
from loaderbench.report.terminal import draw, say


def print_comparison(
    console: Console, found: Comparison, gates: Sequence[GateResult], facts: Sequence[Fact] = ()
) -> None:
    """The headline, reasons for doubt, what was compared (`facts`), the table, and the gates."""
    say(console, words.sentence(found.headline).text, "bold")
    for reason in found.reasons:
        say(console, f"  {words.sentence(reason).text}")
    for fact in facts:
        say(console, f"  {fact.label:<8}  {fact.value.text}")
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
        said = marked(result)
        style = "" if result.outcome == "passed" else "yellow" if result.gate.warns_only else "red"
        say(console, f"  {result.gate.text}: {said}: {words.sentence(result.said).text}", style)


def comparison_markdown(found: Comparison, gates: Sequence[GateResult], facts: Sequence[Fact] = ()) -> str:
    """The same for a pull request."""
    parts = [f"## {inline(words.sentence(found.headline).text)}"]
    said = [words.sentence(reason).text for reason in found.reasons]
    said += [f"{fact.label}: {fact.value.text}" for fact in facts]
    parts += ["\n".join(f"- {inline(text)}" for text in said)] if said else []
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
    shown = gates_table(gates)
    rows = [[inline(cell.text) for cell in row.cells] for row in shown.rows]
    return "### Gates\n\n" + table([column.label for column in shown.columns], [False, False, False], rows)
