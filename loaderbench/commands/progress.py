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
from loaderbench.records.words import count
from loaderbench.report.words import ISOLATION_RUNS
from loaderbench.session import Listener
from loaderbench.session.listener import Progress as Done

Label = Callable[[Config], str]

ALMOST_DONE_S = 5.0  # a shorter estimate reads "almost done"


def make_listener(kind: ProgressKind, *, verbose: bool) -> PlainLines | Bar | Quiet:
    """Create the display that a flag selects. `auto` is a bar if stderr is a terminal."""
    if kind is ProgressKind.none:
        return Quiet()
    if kind is ProgressKind.bar or (kind is ProgressKind.auto and sys.stderr.isatty()):
        return Bar()
    return PlainLines(verbose=verbose)


class Quiet(Listener):
    """A display that prints only warnings."""

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def warned(self, why: str) -> None:
        """Print the warning."""
        _print(f"Warning: {why}")

    def generating(self, done: int, total: int) -> None:
        """Show the number of generated images."""
        self._count("Generating synthetic JPEGs", done, total)

    def writing(self, name: str, done: int, total: int) -> None:
        """Show the number of written files."""
        self._count(f"Writing files as {name}", done, total)

    def _count(self, what: str, done: int, total: int) -> None:
        """Show nothing."""


class PlainLines(Quiet):
    """A line for each change, for logs and pipes."""

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose
        self._label: Label = config_label

    def doing(self, what: str) -> None:
        """Print the phase."""
        _print(f"{what} ...")

    def _count(self, what: str, done: int, total: int) -> None:
        """Print the count at each quarter."""
        if done and (done * 4) // total > ((done - 1) * 4) // total:
            _print(f"{what}: {done:,} of {total:,}")

    def planned(self, plan: Plan) -> None:
        """Print the size of the plan."""
        self._label = plan.label
        _print(describe_plan(plan))

    def trial_started(self, planned: PlannedTrial, progress: Done) -> None:  # noqa: ARG002 - printed at the end
        """Print the trial, if verbose."""
        if self._verbose:
            _print(f"Trial {planned.id}: {_describe_trial(planned, self._label(planned.config))}")

    def trial_ended(self, trial: Trial, progress: Done) -> None:
        """Print the trial's rate, and the time left for the run."""
        gave = f"{trial.samples_per_s:,.0f} samples/s" if trial.samples_per_s is not None else _plain(trial.status)
        why = f" ({_plain(trial.failure.kind)})" if trial.failure else ""
        what = _describe_trial(trial, self._label(trial.config))
        _print(f"[{_place(progress, '/')}] {what}: {gave}{why}; {time_left(progress)}")

    def verdict_so_far(self, verdict: Verdict, after: str, report: Path) -> None:
        """Print the provisional verdict."""
        _print(provisional(verdict, after, report))


class Bar(Quiet):
    """A live bar with the phase, the time left and the best configuration so far. It represents the time of the run."""

    def __init__(self) -> None:
        columns = (BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task("starting", total=None)
        self._label: Label = config_label

    def __enter__(self) -> Listener:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""
        self._progress.stop()

    def doing(self, what: str) -> None:
        """Show the phase."""
        self._progress.update(self._task, description=what, total=None)

    def warned(self, why: str) -> None:
        """Print the warning above the bar."""
        self._progress.console.print(f"Warning: {why}", markup=False)

    def _count(self, what: str, done: int, total: int) -> None:
        """Show the count, and the share in the bar."""
        text = f"{what}: {done:,} of {total:,}"
        self._progress.update(self._task, description=text, total=total, completed=done)

    def planned(self, plan: Plan) -> None:
        """Print the size of the plan above the bar."""
        self._label = plan.label
        self._progress.console.print(describe_plan(plan))

    def trial_started(self, planned: PlannedTrial, progress: Done) -> None:  # noqa: ARG002 - the bar shows no trial
        """Show the progress."""
        self._show(progress)

    def trial_ended(self, trial: Trial, progress: Done) -> None:
        """Show the progress, and print a failure above the bar."""
        self._show(progress)
        if trial.failure:
            what = _describe_trial(trial, self._label(trial.config))
            self._progress.console.print(f"Failed: {what}: {_plain(trial.failure.kind)}", markup=False)

    def verdict_so_far(self, verdict: Verdict, after: str, report: Path) -> None:
        """Print the provisional verdict above the bar."""
        self._progress.console.print(provisional(verdict, after, report), markup=False, style="dim")

    def _show(self, progress: Done) -> None:
        best = f"; best so far: {progress.best}" if progress.best else ""
        text = f"{_place(progress, ' of ')}; {time_left(progress)}{best}"
        whole_s = progress.elapsed_s + progress.left_s
        self._progress.update(self._task, description=text, total=whole_s or 1.0, completed=progress.elapsed_s)


def provisional(verdict: Verdict, after: str, report: Path) -> str:
    """The verdict so far, marked as provisional."""
    return f"Provisional, after {after}: {verdict}\nReport so far: {report}"


def time_left(progress: Done) -> str:
    """The time left for the run, in words. A phase without a total can end sooner."""
    if progress.left_s < ALMOST_DONE_S:
        return "almost done"
    return f"{'up to' if progress.total is None else 'about'} {about_how_long(progress.left_s)} left"


def describe_plan(plan: Plan) -> str:
    """The size of the plan, in one line."""
    size, rounds = len(plan.configurations), plan.rounds
    if plan.is_adaptive:
        return _describe_adaptive(plan)
    sweep = f"{count(size * rounds, 'trial')} ({count(size, 'config')}, {count(rounds, 'round')})"
    others = [count(rounds, "A/A trial")] if plan.with_twins else []
    return f"{sweep}{_plus(plan, others)}; about {about_how_long(plan.estimated_s)}{_plus_fixes(plan)}"


def _describe_adaptive(plan: Plan) -> str:
    """The most trials and time of an adaptive sweep, and the part of a large grid that its budget covers."""
    size, twins = len(plan.configurations), plan.fewest_rounds if plan.with_twins else 0
    each = f"{count(size, 'config')}, adaptive: {count(plan.rounds, 'round')} at most"
    others = [count(twins, "A/A trial")] if twins else []
    takes_s = plan.estimated_s if plan.budget_s is None else min(plan.budget_s, plan.estimated_s)
    text = f"up to {count(size * plan.rounds, 'trial')} ({each}){_plus(plan, others)}; up to {about_how_long(takes_s)}"
    if plan.first_look < size:
        return f"{text}; the budget allows a first look at about {plan.first_look} of them, spread evenly over the axes"
    return text if plan.budget_s is not None else f"{text}{_plus_fixes(plan)}"


def _plus(plan: Plan, others: list[str]) -> str:
    runs = [f"up to {count(plan.isolation_trials, 'isolation run')}"] if plan.isolation_trials else []
    return f", plus {' and '.join([*others, *runs])}" if others or runs else ""


def _plus_fixes(plan: Plan) -> str:
    if not plan.verify_s:
        return ""
    if not plan.freed_s:
        return f", then up to {about_how_long(plan.verify_s)} to try fixes"
    return f", then up to {about_how_long(plan.freed_s + plan.verify_s)} for free-stage trials and fixes"


def _place(progress: Done, of: str) -> str:
    """The position in a phase, such as `Sweep 3/30`. Fixes have no total, because they end when none is left to try."""
    return f"{progress.phase} {progress.done:,}" + ("" if progress.total is None else f"{of}{progress.total:,}")


def _plain(word: str) -> str:
    return word.replace("_", " ")


def _describe_trial(trial: PlannedTrial, label: str) -> str:
    """What a trial measures: a version, a configuration, and an isolation run or free stage, if any."""
    parts = [trial.side, label]
    if trial.isolation is not None:
        parts.append(ISOLATION_RUNS[trial.isolation])
    if trial.freed is not None:
        parts.append(f"{stage_name(trial.freed)} free")
    return printable(", ".join(part for part in parts if part))


def about_how_long(seconds: float) -> str:
    """A rounded duration in a suitable unit: `90 s`, `12 min`, `5.2 hours`, `324 days`."""
    for unit, length_s, most in (("s", 1.0, 100.0), ("min", 60.0, 100.0), ("hours", 3_600.0, 48.0)):
        if seconds < most * length_s:
            amount = seconds / length_s
            return f"{amount:.1f} {unit}" if unit == "hours" and amount < 10 else f"{amount:.0f} {unit}"
    return f"{seconds / 86_400:,.0f} days"


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
