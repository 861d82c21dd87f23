"""Measures what the search proposes, until it is content, the budget is used up or a signal comes."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from loaderbench.errors import Terminated
from loaderbench.plan import Plan, PlannedTrial
from loaderbench.records import TimelinePoint, Trial
from loaderbench.runner import Outcome
from loaderbench.search import Strategy
from loaderbench.session.listener import Listener, progress_of, typical_s
from loaderbench.session.signals import ignore_signals
from loaderbench.store import Store

ALL_FAILED = "every trial of the first round failed, so that no further round was run"


@dataclass
class Measurements:
    """What a run has so far. `why_partial` says why it is not complete; `stopped_by` the signal that ended it."""

    trials: list[Trial] = field(default_factory=list)
    twins: list[Trial] = field(default_factory=list)
    timeline: list[TimelinePoint] = field(default_factory=list)
    why_partial: str | None = None
    stopped_by: int | None = None

    @property
    def all(self) -> list[Trial]:
        """Trials and twins."""
        return self.trials + self.twins

    def add(self, planned: PlannedTrial, outcome: Outcome) -> None:
        """Keep an outcome."""
        (self.twins if planned.twin else self.trials).append(outcome.trial)
        self.timeline.extend(outcome.timeline)


def measure_rounds(
    plan: Plan,
    search: Strategy,
    measure: Callable[[PlannedTrial], Outcome],
    *,
    store: Store,
    listener: Listener,
    budget_s: float | None,
) -> Measurements:
    """Measure round after round; each trial is on the disk before the next begins."""
    found = Measurements()
    deadline_s = None if budget_s is None else time.monotonic() + budget_s
    try:
        while (proposed := search.next_round(found.trials)) and found.why_partial is None:
            for planned in proposed:
                progress = progress_of(found.all, plan)
                if deadline_s is not None and time.monotonic() + typical_s(found.all, plan) > deadline_s:
                    found.why_partial = f"the budget of {budget_s:g} s was used up after {len(found.all)} trials"
                    break
                listener.trial_started(planned, progress)
                outcome = measure(planned)
                found.add(planned, outcome)  # first: a signal may come at any moment, and run.json is written after it
                store.append(outcome.trial)
                listener.trial_ended(outcome.trial, progress_of(found.all, plan))
            if plan.rounds > 1 and not any(trial.status == "completed" for trial in found.all):
                found.why_partial = found.why_partial or ALL_FAILED
    except (KeyboardInterrupt, Terminated) as stop:
        ignore_signals()
        found.stopped_by = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        found.why_partial = f"interrupted after {len(found.all)} of {plan.trials} trials"
    ignore_signals()
    return found
