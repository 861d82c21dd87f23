"""A complete run: `run_suite` creates the run folder, `_run_into` prepares, measures, concludes and writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loaderbench.conclusion import conclude
from loaderbench.diagnosis.ranking import rank
from loaderbench.ending_signals import put_off_signals, restored_signals
from loaderbench.errors import Terminated, UsageError
from loaderbench.options import shown
from loaderbench.records import Measured, Scalar
from loaderbench.records.words import utc_now
from loaderbench.report.index import update_index
from loaderbench.result import Run
from loaderbench.runner import TrialRunner, TrialServer
from loaderbench.runner.probe import targets_of
from loaderbench.session.conditions import find_conditions
from loaderbench.session.final import measure_final
from loaderbench.session.freeing import measure_bottlenecks
from loaderbench.session.isolation import measure_isolation
from loaderbench.session.listener import Listener
from loaderbench.session.measuring import TrialMeasurer
from loaderbench.session.resuming import (
    Earlier,
    changed_code,
    lost_readings,
    mixed_round,
    overrides_of,
    read_earlier,
    refuse_another_suite,
    refuse_changes,
)
from loaderbench.session.session import LATER_STEPS, Session
from loaderbench.session.sweep import MoreRounds, add_rounds, compare_batches, measure_sweep
from loaderbench.session.verifying import try_remedies
from loaderbench.store import Store, new_run_folder
from loaderbench.suite import LoadedSuite, Override, load_suite
from loaderbench.user_paths import expanded

NOT_ENDED = "the run is in progress or was killed; results so far are in trials.jsonl, and --resume continues it"

Doubt = Callable[[Measured], str]
"""Returns a one-line warning about a planned run; empty if there is none."""


@dataclass(frozen=True)
class SessionResult:
    """A run, its folder and report, and the signal that ended the run early or arrived while the report was written."""

    run: Run
    folder: Path
    page: Path
    stopped_by: int | None


def run_suite(
    loaded: LoadedSuite,
    out: Path | None = None,
    listener: Listener | None = None,
    resume: Path | None = None,
    server: TrialServer | None = None,
    *,
    more_rounds: MoreRounds | None = None,
    doubt: Doubt | None = None,
) -> SessionResult:
    """Measure a suite and write the run folder; with `resume`, continue in the folder of an incomplete run.

    `server` starts the trial processes; by default, a new fork server does. `more_rounds` asks which configurations
    need more rounds. `doubt` is called before the first trial and returns a warning about the run.
    Raises `MissingError` and `UsageError` before anything is measured. A failed trial is recorded and raises nothing.
    """
    earlier = read_earlier(resume) if resume is not None else None
    if earlier is not None:
        refuse_another_suite(earlier, loaded.suite.model_dump(mode="json"))
    store = _store(loaded, out, earlier)
    try:
        with restored_signals():
            server, listener = server or TrialServer(), listener or Listener()
            return _run_into(store, loaded, listener, earlier, server, more_rounds, doubt)
    except BaseException:
        if earlier is None:
            store.discard()
        raise
    finally:
        store.close()


def _store(loaded: LoadedSuite, out: Path | None, earlier: Earlier | None) -> Store:
    """A new run folder, or that of the earlier call."""
    if earlier is None:
        return Store(out or new_run_folder(loaded.suite.name), resumable=not loaded.suite.dataset.is_of_script)
    return Store(earlier.folder, again=True)


def _run_into(  # noqa: PLR0917
    store: Store,
    loaded: LoadedSuite,
    listener: Listener,
    earlier: Earlier | None,
    server: TrialServer,
    more_rounds: MoreRounds | None,
    doubt: Doubt | None,
) -> SessionResult:
    """Prepare, measure, conclude and write."""
    server.warm_up()
    conditions = find_conditions(loaded, server, listener, earlier.record.started_at if earlier else utc_now())
    nothing_yet = conditions.measured(dict.fromkeys(LATER_STEPS, NOT_ENDED), NOT_ENDED)
    if doubt is not None and (warning := doubt(nothing_yet)):
        listener.warned(warning)
    runner = TrialRunner(server, conditions.environment)
    inputs, consumer = conditions.inputs, conditions.consumer
    measuring = TrialMeasurer(server, runner, loaded, inputs, consumer=consumer, store=store, listener=listener)
    if earlier is not None:
        refuse_changes(earlier, nothing_yet)
        measuring.write_copies(conditions.plan.configurations)  # can raise: the folder must still be unchanged here
        store.keep_only(earlier.trials.values())
    listener.planned(conditions.plan)
    store.write_run(conclude(nothing_yet))
    session = Session(conditions, measuring, store=store, listener=listener, earlier=earlier)
    if earlier and (why := changed_code(earlier, targets_of(loaded.suite), loaded.folder)):
        listener.warned(why)
        session.found.remarks["resume"] = why
    if earlier and (lost := lost_readings(earlier)):
        session.found.remarks["lost"] = lost
    if earlier and (mixed := mixed_round(earlier, conditions.plan)):
        session.found.remarks["mixed"] = mixed
    _measure(session, more_rounds)
    return write_results(session)


def _measure(session: Session, more_rounds: MoreRounds | None = None) -> None:
    """Measure the sweep and the steps after it. A signal can end any of them; the results so far are kept."""
    try:
        session.found.copies = session.measuring.write_copies(session.plan.configurations)
        session.found.parity = compare_batches(session.plan, session.measuring)
        measure_sweep(session, lambda after: _show_so_far(session, after))
        of_best = more_rounds is not None and more_rounds.of_best
        if more_rounds is not None and not of_best:
            add_rounds(session, more_rounds)
        session.take_over_earlier()
        measure_final(session, leaves_time=of_best)
        if more_rounds is not None and of_best:
            session.step = "rounds"
            add_rounds(session, more_rounds)
        if session.found.why_partial is None and (session.plan.isolation_trials or session.plan.verify_s):
            _show_so_far(session, "the sweep")
        found = rank(session.so_far()).subject
        subject = found.config if found else None
        measure_isolation(session, subject)
        measure_bottlenecks(session, subject)
        try_remedies(session, subject)
    except (KeyboardInterrupt, Terminated) as stop:
        session.stopped(stop)
    put_off_signals(session.found.late_signals)


def _show_so_far(session: Session, after: str) -> None:
    """Write a provisional report and announce its verdict, between trials when nothing is timed."""
    if not any(trial.status == "completed" for trial in session.found.trials):
        return
    so_far = Run(conclude(session.provisional(after)), session.found.readings, session.store.folder)
    try:
        page = session.store.write_page(so_far.to_html())
    except UsageError:  # the disk can be too full for a report, yet have room for trials
        return
    session.listener.verdict_so_far(so_far.verdict, after, page)


def write_results(session: Session) -> SessionResult:
    """Draw the conclusion and write all files of the run folder."""
    found, store = session.found, session.store
    session.listener.doing("writing the report")
    run = Run(conclude(session.so_far()), found.readings, store.folder)
    store.write_run(run.record)
    store.write_timeline(found.readings)
    page = store.write_page(run.to_html())
    if run.record.complete:
        store.forget_earlier()
    update_index(store.folder)
    return SessionResult(run, store.folder, page, found.stopped_by or next(iter(found.late_signals), None))


def run(
    suite: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    axes: Mapping[str, Sequence[Scalar]] | None = None,
    rounds: int | None = None,
    seconds: float | None = None,
    verify: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    listener: Listener | None = None,
) -> Run:
    """Measure a suite file, write the run folder and return the run; keyword arguments override the suite.

    `axes` sets or adds axes of the sweep, a list of values each: `{"num_workers": [0, 2]}`. `data` is the folder of
    images. `rounds` is how often each configuration is measured, and `seconds` the minimum steady state of a trial, in
    seconds. `verify=False` tries no fixes. All other options are set in the suite, whose paths are relative to its
    file.

    `out` is the run folder; by default, a new one in `reports`. `resume` is the folder of an interrupted run to
    continue; a `listener` receives progress.

    If every trial fails, nothing is raised: `run.verdict.bound` is `unknown`. Raises `SuiteError`, `UsageError` and
    `MissingError`, each with a one-line message, and `KeyboardInterrupt` after writing the results so far.
    """
    if not isinstance(suite, str | os.PathLike):
        raise UsageError(f"run() expects the path of a suite file, got {type(suite).__name__}")
    if resume is not None and out is not None:
        raise UsageError("resume cannot be combined with out: a resumed run stays in its folder")
    place, earlier = (Path(folder) if folder is not None else None for folder in (out, resume))
    overrides = overrides_of(earlier)
    for axis, values in (axes or {}).items():
        listed = values if isinstance(values, str) or not isinstance(values, Iterable) else list(values)
        overrides.append(Override(("sweep", axis), listed, f"axes[{axis!r}]"))
    if data is not None:
        if not os.fspath(data):
            raise UsageError("data: expected a folder, got an empty string")
        overrides.append(Override(("dataset", "root"), str(expanded(os.fspath(data)).resolve()), f"data={str(data)!r}"))
    for name, value in (("rounds", rounds), ("seconds", seconds), ("verify", verify)):
        if value is not None:
            overrides.append(Override(("measure", name), value, f"{name}={shown(value)}"))
    loaded = load_suite(Path(suite), overrides)
    result = run_suite(loaded, place, listener, earlier)
    if result.stopped_by is not None:
        raise KeyboardInterrupt(f"results so far: {result.folder}")
    return result.run
