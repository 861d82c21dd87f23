"""What a user sees while a run goes on, on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from loaderbench.commands.options import ProgressKind
from loaderbench.plan import Plan
from loaderbench.records import Config, IsolationName, PlannedTrial, Trial, config_label
from loaderbench.report.words import ISOLATION_RUNS
from loaderbench.session import Listener, Silent
from loaderbench.session.listener import Progress as Done

Label = Callable[[Config], str]


def make_listener(kind: ProgressKind, *, verbose: bool) -> PlainLines | Bar | Quiet:
    """Build the display that a flag asks for; `auto` looks whether stderr is a terminal."""
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

    def generating(self, done: int, total: int) -> None:
        """Say it at every quarter."""
        if done and (done * 4) // total > ((done - 1) * 4) // total:
            _print(f"generated {done:,} of {total:,} photos")

    def planned(self, plan: Plan) -> None:
        """Say how much there is to do."""
        self._label = plan.label
        _print(describe_plan(plan))

    def trial_started(self, planned: PlannedTrial, progress: Done) -> None:  # noqa: ARG002 - a line says it at the end
        """Say it when asked to say more."""
        if self._verbose:
            _print(f"trial {planned.id}: {_what(self._label(planned.config), planned.isolation)}")

    def trial_ended(self, trial: Trial, progress: Done) -> None:
        """Say what it gave."""
        gave = f"{trial.samples_per_s:,.0f} samples/s" if trial.samples_per_s is not None else trial.status
        why = f" ({trial.failure.kind})" if trial.failure else ""
        left = f", about {_minutes(progress.left_s)} left" if progress.done < progress.total else ""
        what = _what(self._label(trial.config), trial.isolation)
        _print(f"[{progress.done}/{progress.total}] {what}: {gave}{why}{left}")


class Bar(Quiet):
    """A live bar with the time left and the best so far."""

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

    def generating(self, done: int, total: int) -> None:
        """Show how many photos there are."""
        self._progress.update(self._task, description=f"{done} of {total} photos", total=total, completed=done)

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
            what = _what(self._label(trial.config), trial.isolation)
            self._progress.console.print(f"{what}: {trial.failure.kind}", markup=False)

    def _show(self, progress: Done) -> None:
        best = f"; best so far {progress.best}" if progress.best else ""
        text = f"trial {progress.done} of {progress.total}, about {_minutes(progress.left_s)} left{best}"
        self._progress.update(self._task, description=text, total=progress.total, completed=progress.done)


def describe_plan(plan: Plan) -> str:
    """One line on how much there is to do."""
    others = [f"{plan.rounds} to judge the noise by"] if plan.with_twins else []
    others += [f"up to {plan.isolation_trials} with parts taken away"] if plan.isolation_trials else []
    beside = "".join(f" and {other}" for other in others)
    count = len(plan.configurations)
    remedies = f"; then remedies, for {_minutes(plan.verify_s)} at most" if plan.verify_s else ""
    return (
        f"{count} configuration{'s' if count > 1 else ''} in {plan.rounds} round{'s' if plan.rounds > 1 else ''}: "
        f"{count * plan.rounds} trials{beside}, about {_minutes(plan.estimated_s)}{remedies}"
    )


def _what(label: str, isolation: IsolationName | None) -> str:
    """What a trial measures: a configuration, or what is left of it."""
    return label if isolation is None else f"{label}, {ISOLATION_RUNS[isolation]}"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
