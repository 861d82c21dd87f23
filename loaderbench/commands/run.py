"""`loaderbench run`: measure, conclude, and write the run folder and the report."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loaderbench.commands.gates import FailIf, Gates, JunitFile, WarnIf, raise_for, write_job_summary
from loaderbench.commands.options import (
    Axes,
    Budget,
    Data,
    HideProgress,
    OpenPage,
    ProgressKind,
    Rounds,
    Seconds,
    ShowProgress,
    Strategy,
    SuiteFile,
)
from loaderbench.commands.outputs import (
    VERBOSE,
    JsonFile,
    MarkdownFile,
    Outputs,
    PerfettoFile,
    SpeedscopeFile,
    load_to_show,
    make_console,
    show_page,
)
from loaderbench.errors import Interrupted, NoMeasurementError, Terminated, UsageError

if TYPE_CHECKING:
    from loaderbench.records import Comparison, GateResult, RunRecord
    from loaderbench.result import Run
    from loaderbench.session import SessionResult


def run(
    suite: SuiteFile,
    data: Data = None,
    axes: Axes = None,
    strategy: Strategy = None,
    rounds: Rounds = None,
    seconds: Seconds = None,
    budget: Budget = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Random seed for trial and sample order.")] = None,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Measure and diagnose only; try no fixes.")] = False,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Resume an interrupted run.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Run folder; default reports/<suite>-<UTC time>.")
    ] = None,
    baseline: Annotated[Path | None, typer.Option(metavar="RUN", help="Reference run to compare with.")] = None,
    fail_if: FailIf = None,
    warn_if: WarnIf = None,
    json_file: JsonFile = None,
    md_file: MarkdownFile = None,
    junit: JunitFile = None,
    perfetto: PerfettoFile = None,
    speedscope: SpeedscopeFile = None,
    open_page: OpenPage = False,
    progress: ShowProgress = ProgressKind.auto,
    quiet: HideProgress = False,
    verbose: Annotated[bool, typer.Option(VERBOSE, "--verbose", help="Print more, also while running.")] = False,
) -> None:
    """Measure a suite, find the bottleneck and try fixes."""
    from loaderbench.commands.overrides import load_with_flags
    from loaderbench.commands.progress import make_listener
    from loaderbench.session import MoreRounds, overrides_of, run_suite

    measure = {"strategy": strategy, "rounds": rounds, "seconds": seconds, "budget": budget, "seed": seed}
    measure |= {"verify": False} if no_verify else {}
    folder = _run_folder(out, resume)
    loaded = load_with_flags(suite, data=data, axes=axes or [], measure=measure, earlier=overrides_of(resume))
    saved = [run for run in (resume, baseline) if run is not None]
    outputs = Outputs(json_file, md_file, junit, perfetto, speedscope)
    outputs.check(folder=folder, runs=saved, inputs=[suite])
    reference = load_to_show(baseline).record if baseline else None
    asked = Gates(fail_if, warn_if, reference, loaded.suite.consumer.kind)
    again = _words({"--baseline": baseline, "--fail-if": fail_if, "--warn-if": warn_if, **outputs.given()})
    with (
        make_listener(ProgressKind.none if quiet else progress, verbose=verbose) as listener,
        _resumable(suite, resume, again),
    ):
        more_rounds = MoreRounds(asked.undecided, "decide a gate", of_best=True) if baseline else None
        result = run_suite(loaded, out, listener, resume, more_rounds=more_rounds, doubt=asked.doubt)
    comparison, gates = asked.judge(result.run.record, more_rounds=True)
    write_results(result, outputs, comparison, gates, verbose=verbose)
    if open_page:
        show_page(result.page)
    _raise_for_end(result, suite, again)
    raise_for(gates)


def write_results(
    result: SessionResult,
    outputs: Outputs,
    comparison: Comparison | None,
    gates: Sequence[GateResult],
    *,
    verbose: bool,
) -> None:
    """Write the files that flags name, the terminal output, and the job summary."""
    text = _markdown(result.run.to_markdown(), comparison, gates)
    outputs.write_texts(result.run, text)
    if any(trial.status == "completed" for trial in result.run.record.sweep):  # else the command fails with the reason
        outputs.write_perfetto_if_any(result.run)
    outputs.write_speedscope(result.run)
    if not outputs.to_stdout:
        _print_summary(result.run, result.page, comparison, gates, verbose=verbose)
    outputs.write_junit(result.run.record, gates)
    write_job_summary(text)


def _run_folder(out: Path | None, resume: Path | None) -> Path | None:
    """The run folder that the command names; `None` for the default. Raises `UsageError` if it names two."""
    from loaderbench.store import folder_of

    if resume is None:
        return out
    if out is not None:
        raise UsageError("--resume cannot be combined with --out: a resumed run stays in its folder")
    return folder_of(resume)


def _words(flags: Mapping[str, object]) -> list[str]:
    """Command-line arguments for flags that were set and are not stored in the run folder."""
    each = {flag: value if isinstance(value, list) else [value] for flag, value in flags.items() if value is not None}
    return [word for flag, values in each.items() for value in values for word in (flag, str(value))]


@contextmanager
def _resumable(suite: Path, resumed: Path | None, flags: Sequence[str]) -> Iterator[None]:
    """Print the command if a signal ends a resumed run before it measures."""
    try:
        yield
    except (KeyboardInterrupt, Terminated) as stop:
        if resumed is None:
            raise
        number = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        command = _resume_command(suite, resumed, flags)
        raise Interrupted(f"loaderbench: interrupted; resume with: {command}", number) from None


def _resume_command(suite: Path, folder: Path, flags: Sequence[str]) -> str:
    return shlex.join(["loaderbench", "run", str(suite), "--resume", str(folder), *flags])


def _raise_for_end(result: SessionResult, suite: Path, flags: Sequence[str]) -> None:
    """Raise `Interrupted` if a signal ended the run, and `NoMeasurementError` if no trial was completed.

    `flags` are the flags to repeat when the run is resumed.
    """
    record = result.run.record
    if result.stopped_by is not None:
        message = f"loaderbench: interrupted; results so far: {result.folder}"
        command = _resume_command(suite, result.folder, flags)
        raise Interrupted(
            f"{message} (complete)" if record.complete else f"{message}; resume with: {command}", result.stopped_by
        )
    if not any(trial.status == "completed" for trial in record.sweep):
        raise NoMeasurementError(_nothing_measured(record, result.page))


def _print_summary(
    run: Run, page: Path, comparison: Comparison | None, gates: Sequence[GateResult], *, verbose: bool
) -> None:
    from loaderbench.report.compare import print_comparison, print_gates
    from loaderbench.report.terminal import print_summary

    console = make_console()
    print_summary(run.document, console, report_path=str(page), verbose=verbose, verbose_flag=VERBOSE)
    if comparison is not None:
        console.print()
        print_comparison(console, comparison, gates)
    else:
        print_gates(console, gates)


def _markdown(report: str, comparison: Comparison | None, gates: Sequence[GateResult]) -> str:
    """The report of the run, followed by the comparison and the gates."""
    from loaderbench.report.compare import comparison_markdown, gates_markdown

    below = comparison_markdown(comparison, gates) if comparison is not None else gates_markdown(gates)
    return f"{report}\n{below}" if below else report


def _nothing_measured(record: RunRecord, page: Path) -> str:
    from loaderbench.diagnosis.failures import last_words

    failures = [trial.failure for trial in record.sweep if trial.failure]
    if not failures:
        return f"no trial ran: {'; '.join(record.notes)}"
    first = failures[0]
    return f"every trial failed: {first.kind}: {last_words(first.message)}; {first.hint}; details: {page}"
