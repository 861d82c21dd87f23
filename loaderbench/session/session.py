"""A run in progress: its conditions, its results so far, and what ends it early."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from loaderbench.ending_signals import put_off_signals
from loaderbench.errors import Terminated
from loaderbench.records import (
    Dropped,
    Final,
    FormatCopy,
    Measured,
    Parity,
    PlannedTrial,
    Readings,
    Reasons,
    Role,
    SideBySide,
    Trial,
    Verification,
)
from loaderbench.records.words import count
from loaderbench.runner import TrialOutcome, not_tried
from loaderbench.session.conditions import Conditions
from loaderbench.session.listener import Listener, Progress
from loaderbench.session.measuring import TrialMeasurer, consumer_for
from loaderbench.session.resuming import Earlier
from loaderbench.session.time_left import TimeLeft
from loaderbench.session.time_slicing import SlicedRounds
from loaderbench.store import Store

Step = Literal["sweep", "final", "rounds", "isolation", "freed", "remedies", "pairs"]

LATER_STEPS = ("final", "isolation", "bottlenecks", "verification")
NO_VERIFY = "turned off by --no-verify"
ALL_FAILED = "every trial of the first round failed; later rounds were skipped"


@dataclass
class RunSoFar:
    """The results of a run so far. `why_partial` says why it is incomplete; `stopped_by` is the signal that ended it.

    `remarks` are further notes, keyed by subject. `late_signals` arrived when nothing was left to measure. `left_out`
    is the field of `Measured`.
    """

    trials: list[Trial] = field(default_factory=list)
    readings: Readings = field(default_factory=Readings)
    dropped: tuple[Dropped, ...] = ()
    final: Final | None = None
    parity: tuple[Parity, ...] = ()
    copies: tuple[FormatCopy, ...] = ()
    verification: Verification | None = None
    left_out: Reasons = field(default_factory=dict)
    why_partial: str | None = None
    stopped_by: int | None = None
    side_by_side: SideBySide | None = None
    remarks: dict[str, str] = field(default_factory=dict)
    late_signals: list[int] = field(default_factory=list)

    def of(self, *roles: Role) -> list[Trial]:
        """The trials with one of these roles."""
        return [trial for trial in self.trials if trial.role in roles]


_AFTER_SWEEP: dict[Step, str] = {
    "final": "during the final; the sweep is complete",
    "rounds": "during additional rounds; the planned ones are complete",
    "isolation": "during the isolation runs; the sweep is complete",
    "freed": "during the free-stage trials; the sweep is complete",
    "remedies": "while trying fixes; the sweep is complete",
}


class Session:
    """A run in progress: its conditions, its measurer, and its results so far.

    Each trial is saved to disk before the next begins.
    """

    def __init__(
        self,
        conditions: Conditions,
        measuring: TrialMeasurer,
        *,
        store: Store,
        listener: Listener,
        earlier: Earlier | None = None,
    ) -> None:
        self.conditions, self.plan, self.measuring = conditions, conditions.plan, measuring
        self.store, self.listener = store, listener
        self.found = RunSoFar(readings=earlier.readings if earlier else Readings())
        self.step: Step = "sweep"
        self.began_s = time.monotonic()
        self.budget_s = conditions.loaded.suite.measure.budget
        self.deadline_s = None if self.budget_s is None else time.monotonic() + self.budget_s
        self.time_left = TimeLeft(self.plan, self.deadline_s)
        self._earlier = dict(earlier.trials) if earlier else {}

    def so_far(self) -> Measured:
        """The record of the run so far."""
        return self._measured(self.found.left_out, self.found.why_partial)

    def provisional(self, after: str) -> Measured:
        """The record of the run so far, marked as still in progress after this part of it."""
        why = f"The run was still in progress after {after}"
        left_out = dict.fromkeys(LATER_STEPS, why) | self.found.left_out
        return replace(self._measured(left_out, why), in_progress=True)

    def _measured(self, left_out: Reasons, why_partial: str | None) -> Measured:
        found = self.found
        conditions = self.conditions.measured(left_out, why_partial)
        measured = replace(
            conditions,
            trials=tuple(found.trials),
            dropped=found.dropped,
            final=found.final,
            parity=found.parity,
            copies=found.copies,
            verification=found.verification,
            notes=(*conditions.notes, *found.remarks.values()),
        )
        return measured if found.side_by_side is None else _of_two_versions(measured, found.side_by_side)

    def measure(self, planned: PlannedTrial) -> Trial:
        """Measure a trial and keep its outcome."""
        return self.keep(self.measuring(planned))

    def measure_round(
        self, rounds: SlicedRounds, planned: Sequence[PlannedTrial], progress: Callable[[], Progress]
    ) -> None:
        """Measure and keep a round of trials; the listener receives the start and end of each."""

        def keep(outcome: TrialOutcome) -> None:
            self.listener.trial_ended(self.keep(outcome), progress())

        rounds.run(planned, lambda one: self.listener.trial_started(one, progress()), keep)

    def of_sweep(self) -> list[Trial]:
        """The sweep trials so far, including those of an earlier call that have not been taken over yet."""
        here = {trial.id: trial for trial in self.found.of("sweep", "twin")}
        return [*({**self._earlier, **here}).values()]

    def from_earlier(self, planned: PlannedTrial) -> Trial | None:
        """Take over the trial as an earlier call measured it; `None` if that call did not."""
        trial = self._earlier.get(planned.id)
        if trial is None or trial.config != planned.config:
            return None
        if all(known.id != trial.id for known in self.found.trials):
            self.found.trials.append(trial)
        return trial

    def leave_out(self, planned: PlannedTrial, why: str) -> Trial:
        """Record that a trial was not tried, and why; this takes no time."""
        return self.keep(TrialOutcome(not_tried(planned, why, consumer_for(planned, self.conditions.consumer)), []))

    def keep(self, outcome: TrialOutcome) -> Trial:
        """Keep the outcome of a trial."""
        self.found.trials.append(outcome.trial)  # first: a signal can arrive any time, and run.json comes after
        self.found.readings.extend(outcome.timeline)
        self.found.readings.keep_batches(outcome.trial.id, outcome.batches)
        self.store.append(outcome.trial)
        return outcome.trial

    @property
    def why_no_later_step(self) -> str:
        """Why nothing is measured after the sweep; empty if the later steps run."""
        return "" if self.found.why_partial is None else f"incomplete sweep: {self.found.why_partial}"

    @property
    def budget_until_s(self) -> float:
        """The monotonic time at which the budget ends; infinite without a budget."""
        return math.inf if self.deadline_s is None else self.deadline_s

    @property
    def sweep_until_s(self) -> float:
        """The monotonic time at which the sweep ends at the latest; infinite without a budget."""
        if self.plan.sweep_s is not None:
            return self.began_s + self.plan.sweep_s
        return self.budget_until_s

    def is_late(self, takes_s: float) -> bool:
        """Whether the budget has less than `takes_s` seconds left."""
        return self.deadline_s is not None and time.monotonic() + takes_s > self.deadline_s

    @property
    def budget_used_up(self) -> str:
        """The budget, in the words used when it ends a step."""
        return f"the budget of {self.budget_s:g} s"

    def stopped(self, stop: BaseException) -> None:
        """Record the signal that ends the run, and what is missing because of it."""
        found = self.found
        put_off_signals(found.late_signals)
        found.stopped_by = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        self.take_over_earlier()
        found.why_partial = self._interrupted()
        for step in ("final", "isolation") if self.step == "sweep" else ("isolation",):
            found.left_out.setdefault(step, found.why_partial)
        if self.step != "remedies":
            found.left_out.setdefault("bottlenecks", found.why_partial)
        if found.verification is None:
            found.left_out.setdefault("verification", found.why_partial)

    def take_over_earlier(self) -> None:
        """Add the sweep trials of an earlier call that this call has not repeated."""
        here = {trial.id for trial in self.found.trials}
        self.found.trials += [trial for trial in self.of_sweep() if trial.id not in here]

    def _interrupted(self) -> str:
        if self.step in _AFTER_SWEEP:
            return f"interrupted {_AFTER_SWEEP[self.step]}"
        done, of = len(self.found.of("sweep", "twin", "ab")), self.plan.trials
        if self.step == "sweep" and not self.plan.is_adaptive and done <= of:
            return f"interrupted after {done:,} of {of:,} trials"
        return f"interrupted after {count(done, 'trial')}"  # a gate can ask for rounds that were not planned


def _of_two_versions(measured: Measured, found: SideBySide) -> Measured:
    """The record as a comparison of two versions; its plan is what was measured of both."""
    rounds = max((trial.round for trial in measured.trials), default=0)
    plan = replace(
        measured.plan,
        configs=found.configs,
        configurations=len(found.configs),
        rounds=rounds,
        trials=2 * rounds * len(found.configs),
    )
    return replace(measured, kind="ab", plan=plan, side_by_side=found)
