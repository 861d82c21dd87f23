"""Measures what the search proposes, then the ladder, until a budget is used up or a signal comes."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from loaderbench.errors import Terminated
from loaderbench.plan import Plan, PlannedTrial
from loaderbench.records import Readings, Reasons, Trial, Verification
from loaderbench.runner import Outcome, not_tried
from loaderbench.search import Strategy
from loaderbench.session.ladder import Ladder
from loaderbench.session.listener import Listener, Progress, climbing, progress_of, trying, typical_s
from loaderbench.session.paired import PairedRounds
from loaderbench.session.resuming import Earlier
from loaderbench.session.signals import put_off_signals
from loaderbench.session.verifying import Verifier
from loaderbench.store import Store

MakeVerifier = Callable[[list[Trial], float], "tuple[Verifier | None, str]"]
"""What tries remedies, given the sweep's trials and the moment to end at; or why nothing does."""

ALL_FAILED = "every trial of the first round failed, so that no further round was run"


@dataclass
class Measurements:
    """What a run has so far. `why_partial` says why it is not complete; `stopped_by` the signal that ended it.

    `late_signals` came when nothing was left to measure.
    `rungs` are the trials of the ladder, `no_rungs` why others of it (all, under `ladder`) were not measured.
    `verification` are the remedies that were tried, `no_verification` why none was.
    """

    trials: list[Trial] = field(default_factory=list)
    twins: list[Trial] = field(default_factory=list)
    rungs: list[Trial] = field(default_factory=list)
    no_rungs: Reasons = field(default_factory=dict)
    timeline: Readings = field(default_factory=Readings)
    verification: Verification | None = None
    no_verification: str = ""
    why_partial: str | None = None
    stopped_by: int | None = None
    late_signals: list[int] = field(default_factory=list)

    @property
    def all(self) -> list[Trial]:
        """Trials and twins: those of the sweep."""
        return self.trials + self.twins

    def add(self, planned: PlannedTrial, outcome: Outcome) -> None:
        """Keep an outcome."""
        kind = self.rungs if planned.rung != "end_to_end" else self.twins if planned.twin else self.trials
        if not planned.tries:
            kind.append(outcome.trial)
        self.timeline.extend(outcome.timeline)


class Rounds:
    """Measures one plan; each trial is on the disk before the next begins."""

    def __init__(
        self,
        plan: Plan,
        measure: Callable[[PlannedTrial], Outcome],
        paired: PairedRounds,
        *,
        store: Store,
        listener: Listener,
        budget_s: float | None,
        earlier: Earlier | None = None,
    ) -> None:
        self._plan, self._measure, self._paired, self._store = plan, measure, paired, store
        self._listener = listener
        self._budget_s = budget_s
        self._deadline_s = None if budget_s is None else time.monotonic() + budget_s
        self._found = Measurements(timeline=earlier.timeline if earlier else Readings())
        self._earlier = dict(earlier.trials) if earlier else {}
        self._verifier: Verifier | None = None

    def run(self, search: Strategy, ladder: Ladder, make_verifier: MakeVerifier) -> Measurements:
        """Measure the sweep, the ladder and the remedies; a signal ends any, and what was measured is kept."""
        found = self._found
        try:
            self._sweep(search)
            self._climb(ladder)
            self._verify(make_verifier)
        except (KeyboardInterrupt, Terminated) as stop:
            put_off_signals(found.late_signals)
            found.stopped_by = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
            found.why_partial = self._interrupted()
            found.no_rungs.setdefault("ladder", found.why_partial)
            if self._verifier is not None:
                found.verification, found.no_verification = self._verifier.result("interrupted")
            else:
                found.no_verification = found.why_partial
        put_off_signals(found.late_signals)
        return found

    def _sweep(self, search: Strategy) -> None:
        """Round after round, until the search is content."""
        found, plan = self._found, self._plan
        while (proposed := search.next_round(found.trials)) and found.why_partial is None:
            for planned in proposed:
                progress = progress_of(found.all, plan)
                if self._is_late(typical_s(found.all, plan)):
                    found.why_partial = f"the budget of {self._budget_s:g} s was used up after {len(found.all)} trials"
                    break
                self._listener.trial_started(planned, progress)
                why_not = search.why_not(planned, found.all)
                outcome = self._once_more(planned) or (
                    self._kept(planned) if why_not is None else self._pruned(planned, why_not)
                )
                self._listener.trial_ended(outcome.trial, progress_of(found.all, plan))
            if plan.rounds > 1 and not any(trial.status == "completed" for trial in found.all):
                found.why_partial = found.why_partial or ALL_FAILED

    def _climb(self, ladder: Ladder) -> None:
        """The rungs, unless there is nothing to take apart or no time for it."""
        found, sweep = self._found, len(self._found.all)
        if found.why_partial is not None:
            found.no_rungs["ladder"] = f"the sweep is not complete: {found.why_partial}"
            return
        planned = ladder.plan(found.trials)
        found.no_rungs |= planned.left_out
        if planned.trials and self._is_late(len(planned.trials) * self._plan.rung_s):
            found.no_rungs["ladder"] = f"the budget of {self._budget_s:g} s left no time for it"
            return
        for number, trial in enumerate(planned.trials):
            if any(done.rung == trial.rung and done.status != "completed" for done in found.rungs):
                continue  # it would fail again, or hang as long
            self._listener.trial_started(trial, climbing(found.trials, self._plan, sweep + number, planned.trials))
            outcome = self._kept(trial)
            done = climbing(found.trials, self._plan, sweep + number + 1, planned.trials)
            self._listener.trial_ended(outcome.trial, done)

    def _verify(self, make_verifier: MakeVerifier) -> None:
        """Try remedies, round after round, until none is left or the time for it is up."""
        found = self._found
        if found.why_partial is not None:
            found.no_verification = f"the sweep is not complete: {found.why_partial}"
            return
        until_s = time.monotonic() + self._plan.verify_s if self._deadline_s is None else self._deadline_s
        self._verifier, found.no_verification = make_verifier(found.trials, until_s)
        if self._verifier is None:
            return
        verifier = self._verifier

        def progress() -> Progress:
            return trying(len(verifier.trials), until_s - time.monotonic(), found.trials, self._plan)

        def keep(planned: PlannedTrial, outcome: Outcome) -> None:
            self._keep(planned, outcome)
            self._listener.trial_ended(outcome.trial, progress())

        while planned := verifier.next_round():
            self._paired.run(planned, lambda one: self._listener.trial_started(one, progress()), keep)
        found.verification, found.no_verification = verifier.result()

    def _kept(self, planned: PlannedTrial) -> Outcome:
        outcome = self._measure(planned)
        self._keep(planned, outcome)
        return outcome

    def _keep(self, planned: PlannedTrial, outcome: Outcome) -> None:
        self._found.add(planned, outcome)  # first: a signal may come at any moment, and run.json is written after it
        if planned.tries and self._verifier is not None:
            self._verifier.trials.append(outcome.trial)
        self._store.append(outcome.trial)

    def _once_more(self, planned: PlannedTrial) -> Outcome | None:
        """What an earlier call has measured already."""
        trial = self._earlier.get(planned.id)
        if trial is None or trial.config != planned.config:
            return None
        outcome = Outcome(trial, [])
        self._found.add(planned, outcome)
        return outcome

    def _pruned(self, planned: PlannedTrial, why: str) -> Outcome:
        """A record that it was not tried, and why; it costs no time."""
        outcome = Outcome(not_tried(planned, why), [])
        self._found.add(planned, outcome)
        self._store.append(outcome.trial)
        return outcome

    def _is_late(self, takes_s: float) -> bool:
        return self._deadline_s is not None and time.monotonic() + takes_s > self._deadline_s

    def _interrupted(self) -> str:
        done, of = len(self._found.all), self._plan.trials
        if self._verifier is not None:
            return "interrupted while remedies were tried, after the sweep"
        if done == of:
            return "interrupted after the sweep, before all parts were taken away from its configuration"
        return f"interrupted after {done} of {of} trials"
