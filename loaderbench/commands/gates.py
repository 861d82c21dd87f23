"""Gates: the flags `--fail-if` and `--warn-if`, and their exit codes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loaderbench.commands.outputs import writing
from loaderbench.errors import GateFailedError, InconclusiveError, UsageError
from loaderbench.stderr import say

if TYPE_CHECKING:
    from loaderbench.records import Comparison, Config, Gate, GateResult, Measured, RunRecord

FailIf = Annotated[
    list[str] | None,
    typer.Option("--fail-if", metavar="EXPR", help="Exit 1 when true, 4 when inconclusive, e.g. samples_per_s:-5%."),
]
WarnIf = Annotated[
    list[str] | None, typer.Option("--warn-if", metavar="EXPR", help="Warn when true; exit code unchanged.")
]
JunitFile = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write gates and trials as JUnit XML.")]


def parse_gates(fail_if: Sequence[str] | None, warn_if: Sequence[str] | None) -> list[Gate]:
    """Parse the expressions of both flags. Raises `UsageError` for an invalid one."""
    from loaderbench.statistics.gates import parse_gate

    gates = [parse_gate(text, "--fail-if") for text in fail_if or ()]
    return gates + [replace(parse_gate(text, "--warn-if"), warns_only=True) for text in warn_if or ()]


class Gates:
    """The gates of one command, and the reference run that they compare with.

    Raises `UsageError` for an invalid expression, or a change without a reference run. A gate on data wait needs a
    `consumer` that takes time, in both runs.
    """

    def __init__(
        self, fail_if: Sequence[str] | None, warn_if: Sequence[str] | None, before: RunRecord | None, consumer: str
    ) -> None:
        from loaderbench.statistics.gates import check_waits

        self._before = before
        self._gates = parse_gates(fail_if, warn_if)
        for kind in (consumer, *([before.consumer] if before is not None else [])):
            check_waits(self._gates, kind)
        for gate in self._gates:
            if gate.kind == "change" and before is None:
                flag = "--warn-if" if gate.warns_only else "--fail-if"
                raise UsageError(f"{flag} {gate.text}: a change needs a reference run; add --baseline RUN")

    def judge(self, run: RunRecord, *, more_rounds: bool = False) -> tuple[Comparison | None, list[GateResult]]:
        """Compare the run with the reference, and evaluate every gate.

        With `more_rounds`, the confidence level allows for several looks at the data.
        """
        from loaderbench.statistics.comparison import compare_runs
        from loaderbench.statistics.gates import LEVEL_OF_LOOKS, judge_gate

        if self._before is None:
            return None, [judge_gate(gate, run, None) for gate in self._gates]
        comparison = compare_runs(self._before, run)
        held_to = compare_runs(self._before, run, LEVEL_OF_LOOKS) if more_rounds else comparison
        return comparison, [judge_gate(gate, run, held_to) for gate in self._gates]

    def doubt(self, planned: Measured) -> str:
        """Why the run about to be measured cannot be compared with the reference; empty if it can."""
        from loaderbench.conclusion import conclude
        from loaderbench.statistics.comparison import cannot_compare
        from loaderbench.statistics.run_differences import differences

        different = [] if self._before is None else [*differences(self._before, conclude(planned))]
        return f"--baseline: {cannot_compare(different)}" if different else ""

    def undecided(self, measured: Measured) -> Sequence[Config]:
        """The configuration for which more rounds can decide a gate of `--fail-if`; empty if there is none."""
        from loaderbench.conclusion import conclude
        from loaderbench.statistics.comparison import compare_runs
        from loaderbench.statistics.gates import LEVEL_OF_LOOKS, judge_gate, may_be_decided

        if self._before is None:
            return ()
        run = conclude(measured)
        comparison = compare_runs(self._before, run, LEVEL_OF_LOOKS)
        changes = [gate for gate in self._gates if gate.kind == "change" and not gate.warns_only]
        undecided = [gate for gate in changes if judge_gate(gate, run, comparison).outcome == "inconclusive"]
        if comparison.config is None or not any(may_be_decided(gate, comparison) for gate in undecided):
            return ()
        return (comparison.config,)


def raise_for(results: Sequence[GateResult]) -> None:
    """Raise the error that the gates ask for. A failure takes precedence over an inconclusive result."""
    enforced = [result for result in results if not result.gate.warns_only]
    failed = [result for result in enforced if result.outcome == "failed"]
    undecided = [result for result in enforced if result.outcome == "inconclusive"]
    if failed:
        raise GateFailedError(_said("failed", failed))
    if undecided:
        raise InconclusiveError(_said("inconclusive", undecided))


def _said(how: str, results: Sequence[GateResult]) -> str:
    return "; ".join(f"gate {how}: {result.gate.text}: {result.said}" for result in results)


def write_job_summary(summary: str) -> None:
    """Write the job summary, if the command runs in GitHub Actions. If that fails, a line on stderr says so."""
    if place := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with writing(f"GITHUB_STEP_SUMMARY {place}"), Path(place).open("a", encoding="utf-8") as file:
                file.write(summary + "\n")
        except UsageError as error:  # the gates alone decide the exit code
            say(str(error))
