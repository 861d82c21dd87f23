"""A run under way: what it has, what ends it early, and its first step, the sweep."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from loaderbench.errors import Terminated
from loaderbench.records import Measured, PlannedTrial, Readings, Reasons, Role, Trial, Verification
from loaderbench.runner import Outcome, not_tried
from loaderbench.search import Grid
from loaderbench.session.conditions import Conditions
from loaderbench.session.listener import Listener, Progress
from loaderbench.session.measuring import Measuring, consumer_for
from loaderbench.session.resuming import Earlier
from loaderbench.session.signals import put_off_signals
from loaderbench.session.time_left import TimeLeft, mean_trial_s
from loaderbench.store import Store
from loaderbench.suite.batch_bytes import prefetched_bytes

Step = Literal["sweep", "isolation", "freed", "remedies"]

ALL_FAILED = "every trial of the first round failed; later rounds were skipped"


@dataclass
class Measurements:
    """What a run has so far. `why_partial` says why it is not complete; `stopped_by` the signal that ended it.

    `late_signals` came when nothing was left to measure. `left_out` is that of `Measured`.
    """

    trials: list[Trial] = field(default_factory=list)
    timeline: Readings = field(default_factory=Readings)
    verification: Verification | None = None
    left_out: Reasons = field(default_factory=dict)
    why_partial: str | None = None
    stopped_by: int | None = None
    late_signals: list[int] = field(default_factory=list)

    def of(self, *roles: Role) -> list[Trial]:
        """Trials of these roles."""
        return [trial for trial in self.trials if trial.role in roles]


class Session:
    """A run under way: what it is made under, what measures its trials, and what it has.

    Each trial is on the disk before the next begins.
    """

    def __init__(
        self,
        conditions: Conditions,
        measure: Measuring,
        *,
        store: Store,
        listener: Listener,
        earlier: Earlier | None = None,
    ) -> None:
        self.conditions, self.plan, self.measuring = conditions, conditions.plan, measure
        self.store, self.listener = store, listener
        self.found = Measurements(timeline=earlier.timeline if earlier else Readings())
        self.step: Step = "sweep"
        self.began_s = time.monotonic()
        self.budget_s = conditions.loaded.suite.measure.budget
        self.deadline_s = None if self.budget_s is None else time.monotonic() + self.budget_s
        self.time_left = TimeLeft(self.plan, self.deadline_s)
        self._earlier = dict(earlier.trials) if earlier else {}

    def so_far(self) -> Measured:
        """The run so far."""
        found = self.found
        return self.conditions.measured(found.trials, found.verification, found.left_out, found.why_partial)

    def provisional(self, after: str) -> Measured:
        """The run so far, as one that is still in progress after this step."""
        why, found = f"The run was still in progress after {after}", self.found
        left_out = dict.fromkeys(("isolation", "bottlenecks", "verification"), why) | found.left_out
        return replace(self.conditions.measured(found.trials, found.verification, left_out, why), in_progress=True)

    def measure(self, planned: PlannedTrial) -> Trial:
        """Measure a trial and keep it."""
        return self.keep(self.measuring(planned))

    def from_earlier(self, planned: PlannedTrial) -> Trial | None:
        """The trial as an earlier call has measured it, which is kept; `None` where it has not."""
        trial = self._earlier.get(planned.id)
        if trial is None or trial.config != planned.config:
            return None
        self.found.trials.append(trial)
        return trial

    def leave_out(self, planned: PlannedTrial, why: str) -> Trial:
        """Keep a record that a trial was not tried, and why; it costs no time."""
        return self.keep(Outcome(not_tried(planned, why, consumer_for(planned, self.conditions.consumer)), []))

    def keep(self, outcome: Outcome) -> Trial:
        """Keep what came of a trial."""
        self.found.trials.append(outcome.trial)  # first: a signal may come at any moment, and run.json is written after
        self.found.timeline.extend(outcome.timeline)
        self.found.timeline.keep_batches(outcome.trial.id, outcome.batches)
        self.store.append(outcome.trial)
        return outcome.trial

    def is_late(self, takes_s: float) -> bool:
        """Whether the budget leaves no time for this."""
        return self.deadline_s is not None and time.monotonic() + takes_s > self.deadline_s

    @property
    def budget_used_up(self) -> str:
        """What the budget is called when it ends the run."""
        return f"the budget of {self.budget_s:g} s"

    def stopped(self, stop: BaseException) -> None:
        """A signal ends the run: note which, and what is missing because of it."""
        found = self.found
        put_off_signals(found.late_signals)
        found.stopped_by = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        found.why_partial = self._interrupted()
        found.left_out.setdefault("isolation", found.why_partial)
        if self.step != "remedies":
            found.left_out.setdefault("bottlenecks", found.why_partial)
        if found.verification is None:
            found.left_out.setdefault("verification", found.why_partial)

    def _interrupted(self) -> str:
        done, of = len(self.found.of("sweep", "twin")), self.plan.trials
        if self.step == "freed":
            return "interrupted while stages were made free, after the sweep"
        if self.step == "remedies":
            return "interrupted while trying fixes, after the sweep"
        if done == of:
            return "interrupted after the sweep, during the isolation runs"
        return f"interrupted after {done} of {of} trials"


def measure_sweep(session: Session, round_ended: Callable[[str], None] = lambda _: None) -> None:
    """Every configuration, round after round; `round_ended` hears of each one but the last: `round 1 of 3`."""
    found, plan = session.found, session.plan
    search = Grid(plan, partial(prefetched_bytes, session.conditions.loaded.suite))

    def progress() -> Progress:
        return session.time_left.in_sweep(found.of("sweep", "twin"))

    while (proposed := search.next_round()) and found.why_partial is None:
        for planned in proposed:
            done = found.of("sweep", "twin")
            if session.is_late(mean_trial_s(done, plan.trial_s)):
                trials = "1 trial" if len(done) == 1 else f"{len(done)} trials"
                found.why_partial = f"{session.budget_used_up} was used up after {trials}"
                break
            session.listener.trial_started(planned, progress())
            why_not = search.why_not(planned, done)
            trial = session.from_earlier(planned) or (
                session.measure(planned) if why_not is None else session.leave_out(planned, why_not)
            )
            session.listener.trial_ended(trial, progress())
        round_ = proposed[0].round
        if found.why_partial is None and round_ < plan.rounds:
            round_ended(f"round {round_} of {plan.rounds}")
        if plan.rounds > 1 and not any(trial.status == "completed" for trial in found.trials):
            found.why_partial = found.why_partial or ALL_FAILED
