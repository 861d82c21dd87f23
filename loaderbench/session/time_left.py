"""Progress of a run: its phase, the trials of that phase, and one estimate of the time left that never grows."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean

from loaderbench.plan import Plan
from loaderbench.records import Config, Trial
from loaderbench.session.listener import Phase, Progress
from loaderbench.statistics.intervals import FEWEST_ROUNDS


class TimeLeft:
    """Estimates the time left of the complete run: sweep, final, isolation runs, and the fixes that may be tried.

    Steps that have not begun count with their maximum time. An estimate that would grow is held at its last value, so a
    listener can show each one as it arrives.
    """

    def __init__(self, plan: Plan, deadline_s: float | None = None) -> None:
        """Start the clock; `deadline_s` is the monotonic time at which the budget ends the run."""
        self._plan, self._deadline_s = plan, deadline_s
        self._began_s, self._left_s = time.monotonic(), math.inf

    def in_sweep(self, done: Sequence[Trial], going_on: Sequence[Config] | None = None) -> Progress:
        """Progress after these trials of the sweep and its twins. An adaptive sweep continues only with `going_on`."""
        plan, total = self._plan, None if self._plan.is_adaptive else self._plan.trials
        left_s = sweep_left_s(done, plan, going_on if plan.is_adaptive else None)
        if plan.sweep_s is not None:
            left_s = max(0.0, min(left_s, self._began_s + plan.sweep_s - time.monotonic()))
        return self._progress("Sweep", len(done), total, left_s + plan.final_s + self._after_final_s, done)

    @property
    def _after_final_s(self) -> float:
        return self._plan.isolation_trials * self._plan.isolation_s + self._plan.freed_s + self._plan.verify_s

    def in_final(self, tried: int, until_s: float, sweep: Sequence[Trial]) -> Progress:
        """Progress after `tried` trials of the final, which ends at the monotonic time `until_s` at the latest."""
        left_s = max(0.0, until_s - time.monotonic()) + self._after_final_s
        return self._progress("Final", tried, None, left_s, sweep)

    def in_isolation(self, done: int, total: int, runs: Sequence[Trial], sweep: Sequence[Trial]) -> Progress:
        """Progress after `done` of `total` isolation runs; `runs` are the measured trials."""
        later_s = self._plan.freed_s + self._plan.verify_s
        left_s = (total - done) * mean_trial_s(runs, self._plan.isolation_s) + later_s
        return self._progress("Isolation runs", done, total, left_s, sweep)

    def in_freeing(self, done: int, until_s: float, sweep: Sequence[Trial]) -> Progress:
        """Progress after `done` free-stage trials, which end at the monotonic time `until_s`."""
        left_s = until_s - time.monotonic() + self._plan.verify_s
        return self._progress("Free-stage trials", done, None, left_s, sweep)

    def in_fixes(self, tried: int, until_s: float, sweep: Sequence[Trial]) -> Progress:
        """Progress after `tried` trials of fixes, which end at the monotonic time `until_s` or when none are left."""
        return self._progress("Fixes", tried, None, until_s - time.monotonic(), sweep)

    def until_decided(self, phase: Phase, done: int, until_s: float, trials: Sequence[Trial]) -> Progress:
        """Progress after `done` steps of a phase that ends at the monotonic time `until_s`, or once it is decided."""
        return self._progress(phase, done, None, until_s - time.monotonic(), trials)

    def _progress(self, phase: Phase, done: int, total: int | None, left_s: float, sweep: Sequence[Trial]) -> Progress:
        now_s = time.monotonic()
        self._left_s = min(self._left_s, max(0.0, self._within_budget(left_s, now_s)))
        return Progress(phase, done, total, self._left_s, now_s - self._began_s, _fastest(sweep, self._plan))

    def _within_budget(self, left_s: float, now_s: float) -> float:
        """The estimate limited by the budget; fixes may use all of the budget that is left."""
        if self._deadline_s is None:
            return left_s
        allowed_s = self._deadline_s - now_s
        return allowed_s if self._plan.verify_s else min(left_s, allowed_s)


def sweep_left_s(done: Sequence[Trial], plan: Plan, going_on: Sequence[Config] | None = None) -> float:
    """Seconds for the rest of the sweep, if each configuration takes as long as in earlier rounds.

    A configuration not measured yet takes as long as the plan expects, or as the mean of the others if that is longer.
    `going_on` are the configurations that an adaptive sweep still measures, assumed to reach the last round; `None`
    means all of the plan.
    """
    took_s: dict[object, list[float]] = defaultdict(list)
    for trial in done:
        if trial.duration_s is not None:
            took_s[_key(trial.config)].append(trial.duration_s)
    unmeasured_s = max(plan.trial_s, mean_trial_s(done, plan.trial_s))
    rounds_done = Counter(_key(trial.config) for trial in done if trial.role == "sweep")

    def expected_s(config: Config) -> float:
        return fmean(took_s[_key(config)]) if _key(config) in took_s else unmeasured_s

    left = plan.configurations if going_on is None else going_on
    left_s = sum((plan.rounds - rounds_done[_key(config)]) * expected_s(config) for config in left)
    of_twins = plan.rounds if going_on is None else min(plan.rounds, FEWEST_ROUNDS)
    twins = of_twins - sum(trial.role == "twin" for trial in done) if plan.with_twins else 0
    return left_s + twins * expected_s(plan.baseline)


def mean_trial_s(trials: Sequence[Trial], expected_s: float) -> float:
    """Mean seconds of the finished trials; `expected_s` if there are none."""
    took_s = [trial.duration_s for trial in trials if trial.duration_s is not None]
    return fmean(took_s) if took_s else expected_s


def _key(config: Config) -> object:
    return tuple(config.items())


def _fastest(trials: Sequence[Trial], plan: Plan) -> str | None:
    top = max((t for t in trials if t.samples_per_s is not None), key=lambda t: t.samples_per_s or 0, default=None)
    return f"{top.samples_per_s:,.0f} samples/s ({plan.label(top.config)})" if top else None
