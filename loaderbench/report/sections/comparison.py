"""Tables that compare two runs or versions, and the section on two versions measured in interleaved pairs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from loaderbench.records import Comparison, GateResult, MetricChange, RunRecord
from loaderbench.records.words import count
from loaderbench.report import axes, numbers, tables, words
from loaderbench.report.model import (
    Block,
    Chart,
    Column,
    Fact,
    Facts,
    Heading,
    Paragraph,
    Row,
    Section,
    Table,
    Text,
    Value,
    data_table,
)
from loaderbench.report.sections import noise_charts
from loaderbench.report.view import View
from loaderbench.statistics.sides import Pair, pairs_of, rates_of_pairs

_MOST_ROWS = 30
_MARKS = {"passed": "ok", "failed": "FAILED", "inconclusive": "inconclusive"}
_CAPTION = (
    "One dot per interleaved pair: the change of samples/s. "
    "Intervals are corrected for interim checks, so the comparison may stop early."
)


def section(view: View) -> Section | None:
    """The first section of a run that measured two versions."""
    run = view.run
    if run.side_by_side is None or run.comparison is None:
        return None
    comparison = run.comparison
    gates = (gates_table(run.gates),) if run.gates else ()
    changes = comparison_table(comparison, "versions")
    blocks = (
        Paragraph(words.sentence(comparison.headline)),
        *(Paragraph(words.sentence(reason), "small") for reason in comparison.reasons),
        Facts(version_facts(run)),
        changes,
        *gates,
        *_pairs(run),
    )
    return Section(
        id="comparison",
        title="Before and after",
        label="Before and after",
        blocks=blocks,
        glance=(*version_facts(run), *map(_gate_fact, run.gates), changes),
        in_markdown=True,
    )


def _pairs(run: RunRecord) -> tuple[Block, ...]:
    """A dot for each pair, and a table of the pairs; empty if no pair was completed."""
    configs = run.side_by_side.configs if run.side_by_side else ()
    trials = run.ab_trials
    by_config = [(axes.label(run, config), pairs) for config in configs if (pairs := rates_of_pairs(config, trials))]
    if not by_config:
        return ()
    percent = [[round((after / before - 1) * 100, 2) for _, before, after in pairs] for _, pairs in by_config]
    chart = Chart(
        name="pairs",
        label="Change of samples/s in each pair",
        caption=_CAPTION,
        figures=(noise_charts.rounds([label.text for label, _ in by_config], percent, "change of samples/s, %"),),
    )
    names = ("Pair", "Samples/s, before", "after", "Change")
    columns = (Column("Config"), *(Column(name, numeric=True) for name in names))
    rows = tuple(Row((label, *_cells(pair))) for label, pairs in by_config for pair in pairs)
    return Heading(chart.label), chart, data_table(Table("Pairs", columns, rows))


def _cells(pair: Pair) -> tuple[Text, ...]:
    number, before, after = pair
    return (
        numbers.whole(number),
        numbers.quantity(before),
        numbers.quantity(after),
        numbers.quantity(after / before, numbers.TIMES),
    )


def comparison_table(comparison: Comparison, both: str = "runs") -> Table:
    """Samples/s, data wait, and their changes: a row for each configuration in both runs, the fastest first."""
    rates = [c for c in comparison.metrics if c.metric == "samples_per_s"]
    shares = [c for c in comparison.metrics if c.metric == "data_wait_share"]
    shares = shares if any(share.before or share.after for share in shares) else []
    columns = (
        Column("Config"),
        *(Column(name, numeric=True) for name in ("Samples/s, before", "after", "change")),
        Column("Outcome"),
        *(Column(name, numeric=True) for name in ("Data wait, before", "after", "change, pp") if shares),
    )
    fastest_first = sorted(zip_longest(rates, shares), key=lambda both: -_rate_after(both[0]))
    rows = tuple(_row(*changes, found=comparison) for changes in fastest_first)
    note = tables.left_out(len(rows) - _MOST_ROWS, f"measured in both {both}")
    return Table(f"Configs measured in both {both}", columns, rows[:_MOST_ROWS], note)


def _rate_after(rate: MetricChange) -> float:
    return rate.after.est if rate.after else 0.0


def _row(rate: MetricChange, share: MetricChange | None, *, found: Comparison) -> Row:
    cells = (
        words.configuration(rate.config),
        numbers.interval(rate.before),
        numbers.interval(rate.after),
        _ratio(rate),
        Text(rate.outcome),
    )
    waits = (numbers.share(share.before), numbers.share(share.after), _points(share)) if share else ()
    return Row((*cells, *waits), mark="best" if rate.config == found.config else "")


def _ratio(found: MetricChange) -> Value:
    change = found.change
    return _with_reason(numbers.gain(change.est, change.lo, change.hi), found) if change else numbers.missing()


def _points(found: MetricChange) -> Value:
    change = found.change
    return _with_reason(numbers.interval(change.scaled(100), digits=2), found) if change else numbers.missing()


def _with_reason(value: Value, found: MetricChange) -> Value:
    """The value; a change without an interval has the first clause of the reason in its place."""
    reason = found.not_measured.get("change")
    if reason is None:
        return value
    clause = words.plain(re.split("[;,]", reason)[0], words.LABEL_LIMIT)
    return replace(value, text=f"{value.main} ({clause})", detail=clause)


def version_facts(run: RunRecord) -> tuple[Fact, ...]:
    """Both versions, the number of pairs, and why the run ended; empty for a run without two versions."""
    side_by_side = run.side_by_side
    if side_by_side is None:
        return ()
    complete = sum(pairs_of(config, run.ab_trials) for config in side_by_side.configs)
    pairs = count(complete, "complete pair") if complete else "no complete pair"
    took = numbers.duration(sum(trial.duration_s or 0.0 for trial in run.ab_trials)).text
    return (
        *(Fact(version.side.capitalize(), words.name(str(version))) for version in side_by_side.versions),
        Fact("Measured", Text(f"{pairs} of interleaved processes, {took}; {words.plain(side_by_side.ended, 200)}")),
    )


def gates_table(gates: Sequence[GateResult]) -> Table:
    """A row for each gate: its outcome and its measurement."""
    columns = (Column("Gate"), Column("Outcome"), Column("Measured", prose=True))
    rows = tuple(Row((Text(g.gate.text), Text(marked(g)), words.sentence(g.said))) for g in gates)
    return Table("Gates", columns, rows)


def _gate_fact(result: GateResult) -> Fact:
    return Fact(f"Gate {result.gate.text}", Text(f"{marked(result)}: {words.sentence(result.said).text}"))


def marked(result: GateResult) -> str:
    """The gate's outcome in one or two words."""
    return f"{_MARKS[result.outcome]}{' (warning only)' if result.gate.warns_only else ''}"
