"""`loaderbench ab`: compare two versions of a user's code in interleaved pairs, until every gate is decided."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loaderbench.commands.gates import FailIf, JunitFile, WarnIf, parse_gates, raise_for, write_job_summary
from loaderbench.commands.options import (
    Axes,
    Data,
    HideProgress,
    OpenPage,
    ProgressKind,
    Seconds,
    ShowProgress,
    SuiteFile,
)
from loaderbench.commands.outputs import JsonFile, MarkdownFile, Outputs, make_console, show_page
from loaderbench.errors import Interrupted, NoMeasurementError

if TYPE_CHECKING:
    from loaderbench.records import RunRecord
    from loaderbench.session import SessionResult

_REF = "A git revision, a folder, or a suite file"


def ab(
    suite: SuiteFile,
    before: Annotated[str | None, typer.Option(metavar="REF", help=f"{_REF}; default HEAD, the last commit.")] = None,
    after: Annotated[str | None, typer.Option(metavar="REF", help=f"{_REF}; default the working tree.")] = None,
    data: Data = None,
    axes: Axes = None,
    seconds: Seconds = None,
    budget: Annotated[str, typer.Option(metavar="TIME", help="Time limit, e.g. 90s, 3m or 1h.")] = "3m",
    fail_if: FailIf = None,
    warn_if: WarnIf = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run folder; default reports/ab-<suite>-<UTC time>.")
    ] = None,
    json_file: JsonFile = None,
    md_file: MarkdownFile = None,
    junit: JunitFile = None,
    open_page: OpenPage = False,
    progress: ShowProgress = ProgressKind.auto,
    quiet: HideProgress = False,
) -> None:
    """Compare two versions of your code in interleaved pairs, until every gate is decided."""
    from loaderbench.commands.overrides import load_with_flags
    from loaderbench.commands.progress import make_listener
    from loaderbench.session import opened_versions, run_side_by_side, same_code
    from loaderbench.tuning.api import checked_budget_s

    gates = parse_gates(fail_if, warn_if)
    budget_s = checked_budget_s(budget, "--budget")
    outputs = Outputs(json_file, md_file, junit)
    outputs.check(folder=out, inputs=[suite])
    with (
        make_listener(ProgressKind.none if quiet else progress, verbose=False) as listener,
        opened_versions(suite, before, after) as versions,
    ):
        if warning := same_code(versions):
            listener.warned(warning)
        result = run_side_by_side(
            versions,
            lambda file: load_with_flags(file, data=data, axes=axes or [], measure={"seconds": seconds}).selected(),
            listener,
            gates=gates,
            budget_s=budget_s,
            out=out,
        )
    _write(result, outputs)
    if open_page:
        show_page(result.page)
    _raise_for_end(result)
    raise_for(result.run.record.gates)


def _write(result: SessionResult, outputs: Outputs) -> None:
    """Write the files that flags name, the terminal output, and the job summary."""
    from loaderbench.report.compare import comparison_markdown, print_comparison
    from loaderbench.report.sections.comparison import version_facts
    from loaderbench.report.terminal import say_whole

    run = result.run.record
    assert run.comparison is not None
    facts = version_facts(run)
    text = comparison_markdown(run.comparison, run.gates, facts)
    outputs.write_texts(result.run, text)
    if not outputs.to_stdout:
        console = make_console()
        print_comparison(console, run.comparison, run.gates, facts)
        say_whole(console, f"Report: {result.page}")
    outputs.write_junit(run, run.gates)
    write_job_summary(text)


def _raise_for_end(result: SessionResult) -> None:
    """Raise `Interrupted` if a signal ended the run, and `NoMeasurementError` if a version has no rate."""
    run = result.run.record
    if result.stopped_by is not None:
        raise Interrupted(
            f"loaderbench: interrupted; results so far: {result.folder}; it cannot be resumed", result.stopped_by
        )
    if run.comparison is None or not any(change.change for change in run.comparison.metrics):
        raise NoMeasurementError(_nothing_measured(run, result.page))


def _nothing_measured(run: RunRecord, page: Path) -> str:
    """Which version has no rate, how its trials failed, and the hint.

    If both have rates but no pair, it is the version whose trials failed most often.
    """
    from loaderbench.diagnosis.failures import last_words
    from loaderbench.statistics.configurations import rate_of

    failed = [trial for trial in run.ab_trials if trial.failure]
    if not failed or run.side_by_side is None:
        return f"no pair was measured: {run.side_by_side.ended if run.side_by_side else ''}; set a longer --budget"
    measured = {trial.side for trial in run.ab_trials if rate_of(trial)}
    counts = Counter(trial.side for trial in failed)
    version = min(run.side_by_side.versions, key=lambda one: (one.side in measured, -counts[one.side]))
    failure = next((trial.failure for trial in failed if trial.side == version.side), None)
    if failure is None:
        return f"{version.side} ({version}): not measured: {run.side_by_side.ended}; details: {page}"
    reason = f"{failure.kind}: {last_words(failure.message)}; {failure.hint}"
    return f"{version.side} ({version}): {reason}; details: {page}"
