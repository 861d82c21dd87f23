"""Progress of a run on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from loaderbench.commands.options import ProgressKind
from loaderbench.diagnosis.wording import stage_name
from loaderbench.plan import Plan
from loaderbench.records import Config, PlannedTrial, Trial, Verdict, config_label
from loaderbench.report.numbers import count
from loaderbench.report.words import ISOLATION_RUNS
from loaderbench.session import Listener, Silent
from loaderbench.session.listener import Progress as Done

Label = Callable[[Config], str]

ALMOST_DONE_S = 5.0  # an estimate below this says no more than that


def make_listener(kind: ProgressKind, *, verbose: bool) -> PlainLines | Bar | Quiet:
    """Build the display that a flag asks for; `auto` is a bar where stderr is a terminal."""
    if kind is ProgressKind.none:
        return Quiet()
    if kind is ProgressKind.bar or (kind is ProgressKind.auto and sys.stderr.isatty()):
        return Bar()
    return PlainLines(verbose=verbose)


class Quiet(Silent):
    """Says nothing."""

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


class PlainLines(Quiet):
    """A line when something changed, for logs and pipes."""

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose
        self._label: Label = config_label

    def doing(self, what: str) -> None:
        """Say it."""
        _print(f"{what} ...")

    def warned(self, why: str) -> None:
        """Say it."""
        _print(f"Warning: {why}")

    def generating(self, done: int, total: int) -> None:
        """Say it at every quarter."""
        if done and (done * 4) // total > ((done - 1) * 4) // total:
            _print(f"Generating photos: {done:,} of {total:,}")

    def planned(self, plan: Plan) -> None:
        """Say how much there is to do."""
        self._label = plan.label
        _print(describe_plan(plan))

    def trial_started(self, planned: PlannedTrial, progress: Done) -> None:  # noqa: ARG002 - a line says it at the end
        """Say it when asked to say more."""
        if self._verbose:
            _print(f"Trial {planned.id}: {_what(self._label(planned.config), planned)}")

    def trial_ended(self, trial: Trial, progress: Done) -> None:
        """Say what it gave, and how long the whole run still takes."""
        gave = f"{trial.samples_per_s:,.0f} samples/s" if trial.samples_per_s is not None else _plain(trial.status)
        why = f" ({_plain(trial.failure.kind)})" if trial.failure else ""
        what = _what(self._label(trial.config), trial)
        _print(f"[{_place(progress, '/')}] {what}: {gave}{why}; {time_left(progress)}")

    def verdict_so_far(self, verdict: Verdict, after: str, report: Path) -> None:
        """Say it."""
        _print(provisional(verdict, after, report))


class Bar(Quiet):
    """A live bar with the phase, the time left and the best configuration so far; its length is that of the run."""

    def __init__(self) -> None:
        columns = (BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task("starting", total=None)

    def __enter__(self) -> Listener:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        self._progress.stop()

    def doing(self, what: str) -> None:
        """Show it."""
        self._progress.update(self._task, description=what, total=None)

    def warned(self, why: str) -> None:
        """Say it above the bar."""
        self._progress.console.print(f"Warning: {why}", markup=False)

    def generating(self, done: int, total: int) -> None:
        """Show how many photos there are."""
        text = f"Generating photos: {done:,} of {total:,}"
        self._progress.update(self._task, description=text, total=total, completed=done)

    def planned(self, plan: Plan) -> None:
        """Say how much there is to do, above the bar."""
        self._label = plan.label
        self._progress.console.print(describe_plan(plan))

    def trial_started(self, planned: PlannedTrial, progress: Done) -> None:  # noqa: ARG002 - the bar shows no trial
        """Show how far it is."""
        self._show(progress)

    def trial_ended(self, trial: Trial, progress: Done) -> None:
        """Show how far it is."""
        self._show(progress)
        if trial.failure:
            what = _what(self._label(trial.config), trial)
            self._progress.console.print(f"Failed: {what}: {_plain(trial.failure.kind)}", markup=False)

    def verdict_so_far(self, verdict: Verdict, after: str, report: Path) -> None:
        """Say it above the bar."""
        self._progress.console.print(provisional(verdict, after, report), markup=False, style="dim")

    def _show(self, progress: Done) -> None:
        best = f"; best so far: {progress.best}" if progress.best else ""
        text = f"{_place(progress, ' of ')}; {time_left(progress)}{best}"
        whole_s = progress.elapsed_s + progress.left_s
        self._progress.update(self._task, description=text, total=whole_s or 1.0, completed=progress.elapsed_s)


def provisional(verdict: Verdict, after: str, report: Path) -> str:
    """The verdict so far, marked as such."""
    return f"Provisional, after {after}: {verdict}\nReport so far: {report}"


def time_left(progress: Done) -> str:
    """The time left of the whole run in words; fixes end sooner where none is left to try."""
    if progress.left_s < ALMOST_DONE_S:
        return "almost done"
    return f"{'up to' if progress.phase == 'Fixes' else 'about'} {_minutes(progress.left_s)} left"


def describe_plan(plan: Plan) -> str:
    """One line on how much there is to do."""
    size, rounds = len(plan.configurations), plan.rounds
    sweep = f"{count(size * rounds, 'trial')} ({count(size, 'configuration')}, {count(rounds, 'round')})"
    others = [count(rounds, "A/A trial")] if plan.with_twins else []
    others += [f"up to {count(plan.isolation_trials, 'isolation run')}"] if plan.isolation_trials else []
    more = f", plus {' and '.join(others)}" if others else ""
    fixes = f", then up to {_minutes(plan.verify_s)} to try fixes" if plan.verify_s else ""
    return f"{sweep}{more}; about {_minutes(plan.estimated_s)}{fixes}"


def _place(progress: Done, of: str) -> str:
    """`Sweep 3/30`; fixes have no total, for they end when none is left to try."""
    return f"{progress.phase} {progress.done:,}" + ("" if progress.total is None else f"{of}{progress.total:,}")


def _plain(word: str) -> str:
    return word.replace("_", " ")


def _what(label: str, planned: PlannedTrial) -> str:
    """What a trial measures: a configuration, an isolation run of it, or one of its stages that is free."""
    if planned.freed is not None:
        return f"{label}, {stage_name(planned.freed)} free"
    return label if planned.isolation is None else f"{label}, {ISOLATION_RUNS[planned.isolation]}"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
