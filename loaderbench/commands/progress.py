"""Progress of a run on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from loaderbench.commands.options import ProgressKind
from loaderbench.diagnosis.wording import stage_name
from loaderbench.errors import printable
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
        self._count("Generating synthetic JPEGs", done, total)

    def writing(self, name: str, done: int, total: int) -> None:
        """Say it at every quarter."""
        self._count(f"Writing files as {name}", done, total)

    def _count(self, what: str, done: int, total: int) -> None:
        if done and (done * 4) // total > ((done - 1) * 4) // total:
            _print(f"{what}: {done:,} of {total:,}")

    def planned(self, plan: Plan) -> None:
        """Say how much there is to do."""
        self._label = plan.label
        _print(describe_plan(plan))

    def trial_started(self, planned: PlannedTrial, progress: Done) -> None:  # noqa: ARG002 - a line says it at the end
        """Say it when asked to say more."""
        if self._verbose:
            _print(f"Trial {planned.id}: {_what(planned, self._label(planned.config))}")

    def trial_ended(self, trial: Trial, progress: Done) -> None:
        """Say what it gave, and how long the whole run still takes."""
        gave = f"{trial.samples_per_s:,.0f} samples/s" if trial.samples_per_s is not None else _plain(trial.status)
        why = f" ({_plain(trial.failure.kind)})" if trial.failure else ""
        what = _what(trial, self._label(trial.config))
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
        self._label: Label = config_label

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
        self._count("Generating synthetic JPEGs", done, total)

    def writing(self, name: str, done: int, total: int) -> None:
        """Show how many files are written."""
        self._count(f"Writing files as {name}", done, total)

    def _count(self, what: str, done: int, total: int) -> None:
        text = f"{what}: {done:,} of {total:,}"
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
            what = _what(trial, self._label(trial.config))
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
    """The time left of the whole run in words; a phase without a total may end sooner."""
    if progress.left_s < ALMOST_DONE_S:
        return "almost done"
    return f"{'up to' if progress.total is None else 'about'} {about_how_long(progress.left_s)} left"


def describe_plan(plan: Plan) -> str:
    """One line on how much there is to do."""
    size, rounds = len(plan.configurations), plan.rounds
    if plan.is_adaptive:
        return _describe_adaptive(plan)
    sweep = f"{count(size * rounds, 'trial')} ({count(size, 'config')}, {count(rounds, 'round')})"
    others = [count(rounds, "A/A trial")] if plan.with_twins else []
    return f"{sweep}{_plus(plan, others)}; about {about_how_long(plan.estimated_s)}{_then_fixes(plan)}"


def _describe_adaptive(plan: Plan) -> str:
    """The most that an adaptive sweep may take, and how much of a large grid its budget allows to look at."""
    size, twins = len(plan.configurations), plan.fewest_rounds if plan.with_twins else 0
    each = f"{count(size, 'config')}, adaptive: {count(plan.rounds, 'round')} at most"
    others = [count(twins, "A/A trial")] if twins else []
    takes_s = plan.estimated_s if plan.budget_s is None else min(plan.budget_s, plan.estimated_s)
    said = f"up to {count(size * plan.rounds, 'trial')} ({each}){_plus(plan, others)}; up to {about_how_long(takes_s)}"
    if plan.first_look < size:
        return f"{said}; the budget allows a first look at about {plan.first_look} of them, spread evenly over the axes"
    return said if plan.budget_s is not None else f"{said}{_then_fixes(plan)}"


def _plus(plan: Plan, others: list[str]) -> str:
    runs = [f"up to {count(plan.isolation_trials, 'isolation run')}"] if plan.isolation_trials else []
    return f", plus {' and '.join([*others, *runs])}" if others or runs else ""


def _then_fixes(plan: Plan) -> str:
    if not plan.verify_s:
        return ""
    if not plan.freed_s:
        return f", then up to {about_how_long(plan.verify_s)} to try fixes"
    return f", then up to {about_how_long(plan.freed_s + plan.verify_s)} for free-stage trials and fixes"


def _place(progress: Done, of: str) -> str:
    """`Sweep 3/30`; fixes have no total, for they end when none is left to try."""
    return f"{progress.phase} {progress.done:,}" + ("" if progress.total is None else f"{of}{progress.total:,}")


def _plain(word: str) -> str:
    return word.replace("_", " ")


def _what(trial: PlannedTrial, label: str) -> str:
    """What a trial measures: a version, a configuration, and an isolation run or a free stage of it."""
    parts = [trial.side, label]
    if trial.isolation is not None:
        parts.append(ISOLATION_RUNS[trial.isolation])
    if trial.freed is not None:
        parts.append(f"{stage_name(trial.freed)} free")
    return printable(", ".join(part for part in parts if part))


def about_how_long(seconds: float) -> str:
    """About how long, in the unit a person would use: `90 s`, `12 min`, `5.2 hours`, `324 days`."""
    for unit, length_s, most in (("s", 1.0, 100.0), ("min", 60.0, 100.0), ("hours", 3_600.0, 48.0)):
        if seconds < most * length_s:
            amount = seconds / length_s
            return f"{amount:.1f} {unit}" if unit == "hours" and amount < 10 else f"{amount:.0f} {unit}"
    return f"{seconds / 86_400:,.0f} days"


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
