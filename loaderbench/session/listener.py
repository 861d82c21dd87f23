"""What a session tells while it runs; a progress display listens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from loaderbench.plan import Plan
from loaderbench.records import PlannedTrial, Trial


@dataclass(frozen=True)
class Progress:
    """How far a run is. `left_s` is an estimate from the trials so far; `best` the fastest configuration so far."""

    done: int
    total: int
    left_s: float
    best: str | None


class Listener(Protocol):
    """Hears what a session does."""

    def doing(self, what: str) -> None:
        """Something that takes a while begins."""

    def generating(self, done: int, total: int) -> None:
        """So many photos are generated."""

    def planned(self, plan: Plan) -> None:
        """The plan is made; trials follow."""

    def trial_started(self, planned: PlannedTrial, progress: Progress) -> None:
        """A trial begins."""

    def trial_ended(self, trial: Trial, progress: Progress) -> None:
        """A trial has ended, in whatever way."""


class Silent:
    """Hears and says nothing."""

    def doing(self, what: str) -> None:
        """Say nothing."""

    def generating(self, done: int, total: int) -> None:
        """Say nothing."""

    def planned(self, plan: Plan) -> None:
        """Say nothing."""

    def trial_started(self, planned: PlannedTrial, progress: Progress) -> None:
        """Say nothing."""

    def trial_ended(self, trial: Trial, progress: Progress) -> None:
        """Say nothing."""


def progress_of(trials: Sequence[Trial], plan: Plan) -> Progress:
    """Judge the time left by the sweep's trials that are done; before any, by the plan. Isolation runs come after."""
    measured = [trial for trial in trials if trial.samples_per_s is not None]
    top = max(measured, key=lambda trial: trial.samples_per_s or 0, default=None)
    best = f"{top.samples_per_s:,.0f} samples/s ({plan.label(top.config)})" if top else None
    left_s = typical_s(trials, plan) * (plan.trials - len(trials)) + plan.isolation_trials * plan.isolation_s
    return Progress(len(trials), plan.trials + plan.isolation_trials, left_s, best)


def isolation_progress(sweep: Sequence[Trial], plan: Plan, done: int, planned: Sequence[PlannedTrial]) -> Progress:
    """How far the isolation runs are, after all trials of the sweep, which alone say which configuration is fast."""
    done, total = plan.trials + done, plan.trials + len(planned)
    return replace(progress_of(sweep, plan), done=done, total=total, left_s=(total - done) * plan.isolation_s)


def remedy_progress(tried: int, left_s: float, trials: Sequence[Trial], plan: Plan) -> Progress:
    """How far trying remedies is, at the longest: it may be content before its time is up."""
    done = plan.trials + plan.isolation_trials + tried
    left_s = max(0.0, left_s)
    total = done + math.ceil(left_s / max(plan.verify_trial_s, 1e-3))
    return replace(progress_of(trials, plan), done=done, total=total, left_s=left_s)


def typical_s(trials: Sequence[Trial], plan: Plan) -> float:
    """How long a trial takes: the mean of those that are done; before any, what the plan expects."""
    took_s = [trial.duration_s for trial in trials if trial.duration_s is not None]
    return sum(took_s) / len(took_s) if took_s else plan.trial_s
