"""The final: time-sliced rounds of the sweep's finalists, until the best is known or time runs out."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from loaderbench.diagnosis.ranking import axes_of_work
from loaderbench.records import Config, Final, PlannedTrial
from loaderbench.session.listener import Progress
from loaderbench.session.measuring import is_alone
from loaderbench.session.session import Session
from loaderbench.session.time_slicing import SlicedRounds
from loaderbench.statistics.configurations import FINAL_TIE, finalists, is_alternative, is_settled, rates_by_round
from loaderbench.statistics.intervals import LEVEL
from loaderbench.statistics.sequential import level_at_looks

MOST_ROUNDS = 12
BUDGET_SHARE = 0.5  # share of the remaining budget; isolation runs, free-stage trials and fixes get the rest

TOO_FEW_ROUNDS = "no config has enough rounds to win"
SEPARATED = "one config is significantly faster than all others"
SEPARATED_IN_FINAL = "one config is significantly faster than the others in the final"
TIED = f"the finalists are tied within {FINAL_TIE:.0%}"
ALL_ROUNDS = f"{MOST_ROUNDS} rounds did not separate the finalists"
NO_TIME = "time limit of the final reached"


def measure_final(session: Session, *, leaves_time: bool = False) -> None:
    """Run the final if the sweep is undecided and there is time for a round of two finalists.

    With `leaves_time`, half of a budget is left.
    """
    found = session.found
    session.step = "final"
    if why := session.why_no_later_step:
        found.left_out["final"] = why
        return
    final = FinalStep(session, leaves_time=leaves_time)
    try:
        final.run()
    finally:  # a signal can end the final
        final.note()


class FinalStep:
    """The step after the sweep: rounds of its finalists, saved and shown as each trial ends."""

    def __init__(self, session: Session, *, leaves_time: bool = False) -> None:
        self._session, plan = session, session.plan
        self._until_s = time.monotonic() + plan.final_s
        if session.deadline_s is not None:
            left_s = session.deadline_s - time.monotonic()
            share = BUDGET_SHARE if plan.verify_s or plan.isolation_runs or leaves_time else 1.0
            self._until_s = min(self._until_s, time.monotonic() + share * left_s)
        self._slices = SlicedRounds(session.measuring, lambda planned: is_alone(planned, session.conditions))
        self._random = random.Random(plan.seed)
        self._rounds, self._trial_s = 0, plan.verify_trial_s
        self._entered: list[Config] = []
        self._all_entered, self._rounds_before = True, 0
        self._ended = ""

    def run(self) -> None:
        """Measure round after round of the finalists that are not yet excluded."""
        while planned := self._next_round():
            began_s = time.monotonic()
            self._session.measure_round(self._slices, planned, self._progress)
            self._trial_s = (time.monotonic() - began_s) / len(planned)
            self._rounds += 1

    def note(self) -> None:
        """Record the finalists and why the final ended, or why there was none."""
        found = self._session.found
        if found.of("final"):
            ended = self._ended or "interrupted"
            found.final = Final(finalists=tuple(self._entered), rounds=self._rounds, ended=ended)
        else:
            found.left_out["final"] = self._ended or "interrupted"

    def _next_round(self) -> Sequence[PlannedTrial]:
        fit = max(0, int((self._until_s - time.monotonic()) / self._trial_s))
        left = self._left(fit)
        self._ended = self._why_ended(left, fit)
        if self._ended:
            return ()
        if not self._entered:
            self._entered, self._all_entered = left[:fit], len(left) <= fit
            sweep = self._session.found.of("sweep")
            self._rounds_before = min(len(rates_by_round(config, sweep)) for config in self._entered)
        meeting = [config for config in left if config in self._entered]
        self._random.shuffle(meeting)
        return [self._session.plan.final(config, self._rounds + 1) for config in meeting]

    def _left(self, fit: int) -> list[Config]:
        """The remaining finalists by the trials so far, fastest first."""
        plan, trials = self._session.plan, self._session.found.of("sweep", "final")
        alike = axes_of_work(self._session.conditions.loaded.suite.dataset)
        comparable = [one for one in plan.configurations if is_alternative(one, plan.baseline, alike)]
        found = finalists(comparable, trials, self._level(fit))
        return [config for config in found if not self._entered or config in self._entered]

    def _level(self, fit: int) -> float:
        """The level at which a configuration is excluded: 95% to enter, and for all rounds of the final together.

        `fit` is the number of trials that there is time for. The rounds follow from the time, never from rates.
        """
        if not self._entered:
            return LEVEL
        most = min(MOST_ROUNDS, self._rounds + fit // 2)  # with two finalists
        return level_at_looks(tuple(range(self._rounds_before + 1, self._rounds_before + most + 1)))

    def _why_ended(self, left: Sequence[Config], fit: int) -> str:
        trials = self._session.found.of("sweep", "final")
        if len(left) < 2:
            separated = SEPARATED if self._all_entered else SEPARATED_IN_FINAL
            return separated if left else TOO_FEW_ROUNDS
        if is_settled(left, trials):
            return TIED
        if self._rounds >= MOST_ROUNDS:
            return ALL_ROUNDS
        return NO_TIME if fit < (len(left) if self._entered else 2) else ""

    def _progress(self) -> Progress:
        found = self._session.found
        return self._session.time_left.in_final(len(found.of("final")), self._until_s, found.of("sweep"))
