"""A run in progress: what it is made under, what it has, and what ends it early."""

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
from loaderbench.runner import TrialOutcome, not_tried
from loaderbench.session.conditions import Conditions
from loaderbench.session.listener import Listener, Progress
from loaderbench.session.measuring import TrialMeasurer, consumer_for
from loaderbench.session.resuming import Earlier
from loaderbench.session.time_left import TimeLeft
from loaderbench.session.time_slicing import SlicedRounds
from loaderbench.store import Store

Step = Literal["sweep", "final", "isolation", "freed", "remedies", "pairs"]

LATER_STEPS = ("final", "isolation", "bottlenecks", "verification")
NO_VERIFY = "turned off by --no-verify"
ALL_FAILED = "every trial of the first round failed; later rounds were skipped"


@dataclass
class RunSoFar:
    """What a run has so far. `why_partial` says why it is not complete; `stopped_by` the signal that ended it.

    `remarks` are further notes, by what they are about. `late_signals` came when nothing was left to measure.
    `left_out` is that of `Measured`.
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
        """Trials of these roles."""
        return [trial for trial in self.trials if trial.role in roles]


_AFTER_SWEEP: dict[Step, str] = {
    "final": "during the final; the sweep is complete",
    "isolation": "during the isolation runs; the sweep is complete",
    "freed": "during the free-stage trials; the sweep is complete",
    "remedies": "while trying fixes; the sweep is complete",
}


class Session:
    """A run under way: what it is made under, what measures its trials, and what it has.

    Each trial is on the disk before the next begins.
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
        """The run so far."""
        return self._measured(self.found.left_out, self.found.why_partial)

    def provisional(self, after: str) -> Measured:
        """The run so far, as one that is still in progress after this step."""
        why = f"The run was still in progress after {after}"
        left_out = dict.fromkeys(LATER_STEPS, why) | self.found.left_out
        return replace(self._measured(left_out, why), in_progress=True)

    def _measured(self, left_out: Reasons, why_partial: str | None) -> Measured:
        found = self.found
        measured = self.conditions.measured(
            found.trials,
            found.verification,
            left_out,
            why_partial,
            dropped=found.dropped,
            final=found.final,
            parity=found.parity,
            copies=found.copies,
        )
        if found.remarks:
            measured = replace(measured, notes=(*measured.notes, *found.remarks.values()))
        return measured if found.side_by_side is None else _of_two_versions(measured, found.side_by_side)

    def measure(self, planned: PlannedTrial) -> Trial:
        """Measure a trial and keep it."""
        return self.keep(self.measuring(planned))

    def measure_round(
        self, rounds: SlicedRounds, planned: Sequence[PlannedTrial], progress: Callable[[], Progress]
    ) -> None:
        """Measure a round of trials and keep them; the listener hears of each one's start and end."""

        def keep(outcome: TrialOutcome) -> None:
            self.listener.trial_ended(self.keep(outcome), progress())

        rounds.run(planned, lambda one: self.listener.trial_started(one, progress()), keep)

    def of_sweep(self) -> list[Trial]:
        """The trials of the sweep so far, and those of an earlier call that are still to be taken over."""
        here = {trial.id: trial for trial in self.found.of("sweep", "twin")}
        return [*({**self._earlier, **here}).values()]

    def from_earlier(self, planned: PlannedTrial) -> Trial | None:
        """The trial as an earlier call has measured it, which is kept; `None` where it has not."""
        trial = self._earlier.get(planned.id)
        if trial is None or trial.config != planned.config:
            return None
        self.found.trials.append(trial)
        return trial

    def leave_out(self, planned: PlannedTrial, why: str) -> Trial:
        """Keep a record that a trial was not tried, and why; it costs no time."""
        return self.keep(TrialOutcome(not_tried(planned, why, consumer_for(planned, self.conditions.consumer)), []))

    def keep(self, outcome: TrialOutcome) -> Trial:
        """Keep what came of a trial."""
        self.found.trials.append(outcome.trial)  # first: a signal may come at any moment, and run.json is written after
        self.found.readings.extend(outcome.timeline)
        self.found.readings.keep_batches(outcome.trial.id, outcome.batches)
        self.store.append(outcome.trial)
        return outcome.trial

    @property
    def why_no_later_step(self) -> str:
        """Why nothing is measured after the sweep; empty where something is."""
        return "" if self.found.why_partial is None else f"incomplete sweep: {self.found.why_partial}"

    @property
    def budget_until_s(self) -> float:
        """The monotonic time at which the budget ends; infinite without one."""
        return math.inf if self.deadline_s is None else self.deadline_s

    @property
    def sweep_until_s(self) -> float:
        """The monotonic time at which the sweep ends, if it has not ended by itself; infinite without a budget."""
        if self.plan.sweep_s is not None:
            return self.began_s + self.plan.sweep_s
        return self.budget_until_s

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
        self.take_over_earlier()
        found.why_partial = self._interrupted()
        for step in ("final", "isolation") if self.step == "sweep" else ("isolation",):
            found.left_out.setdefault(step, found.why_partial)
        if self.step != "remedies":
            found.left_out.setdefault("bottlenecks", found.why_partial)
        if found.verification is None:
            found.left_out.setdefault("verification", found.why_partial)

    def take_over_earlier(self) -> None:
        """Add the trials of the sweep that an earlier call had measured and this one does not reach."""
        here = {trial.id for trial in self.found.trials}
        self.found.trials += [trial for trial in self.of_sweep() if trial.id not in here]

    def _interrupted(self) -> str:
        if self.step in _AFTER_SWEEP:
            return f"interrupted {_AFTER_SWEEP[self.step]}"
        done, of = len(self.found.of("sweep", "twin", "ab")), self.plan.trials
        if self.step == "sweep" and not self.plan.is_adaptive and done <= of:
            return f"interrupted after {done} of {of} trials"
        return f"interrupted after {trials_counted(done)}"  # a gate asks for rounds that were not planned


def trials_counted(count: int) -> str:
    """`1 trial`, `2 trials`."""
    return f"{count} trial{'' if count == 1 else 's'}"


def _of_two_versions(measured: Measured, found: SideBySide) -> Measured:
    """The run as one of two versions: its plan is what was measured of both."""
    rounds = max((trial.round for trial in measured.trials), default=0)
    plan = replace(
        measured.plan,
        configs=found.configs,
        configurations=len(found.configs),
        rounds=rounds,
        trials=2 * rounds * len(found.configs),
    )
    return replace(measured, kind="ab", plan=plan, side_by_side=found)
