"""Which remedies are tried beside which configuration, for how long, and how much they change pixels."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

from loaderbench.plan import Plan, PlannedTrial
from loaderbench.records import Candidate, Config, Trial, Verification
from loaderbench.search import MOST_CANDIDATES, ForwardSelection
from loaderbench.statistics.judging import FEWEST_PAIRS

STEPS_SHARE = 0.8
"""Of the time, for trying remedies; what is left is for comparing the result with the baseline."""

CALLS_FOR_NONE = "the cause calls for no remedy that a trial could show"

Psnr = Callable[[Sequence[tuple[Config, Config]]], Sequence[float | None]]
"""How much the samples of two configurations differ, in dB; `None` where they are the same, or it cannot be told."""


class Verifier:
    """Proposes trials for one configuration and keeps what came of them.

    `propose` names the remedies for a configuration; `until_s` is the monotonic moment at which no more is tried. The
    result is compared with the baseline all the same, unless the time is `strict`. `sweep` says how long a trial takes.
    """

    def __init__(
        self,
        plan: Plan,
        present: Config,
        propose: Callable[[Config, Sequence[Trial]], Sequence[Candidate] | None],
        psnr: Psnr,
        *,
        until_s: float,
        strict: bool = False,
        sweep: Sequence[Trial] = (),
    ) -> None:
        self.trials: list[Trial] = []
        self._plan, self._present, self._psnr, self._strict = plan, present, psnr, strict
        now_s = time.monotonic()
        self._until_s, self._steps_until_s = until_s, now_s + STEPS_SHARE * (until_s - now_s)
        self._expected_s = _expected_s(plan, present, sweep)
        rounds_s = FEWEST_PAIRS * self._expected_s
        most = min(MOST_CANDIDATES, max(1, int(STEPS_SHARE * (until_s - now_s) / rounds_s) - 1))
        self._selection = ForwardSelection(present, plan.baseline, propose, seed=plan.seed, most=most)
        self._wanted = bool(self._selection.candidates)

    def next_round(self) -> Sequence[PlannedTrial]:
        """The next round, or nothing when all is tried or the time is up."""
        trial_s = self._trial_s()
        late = time.monotonic() + (1 + len(self._selection.candidates)) * trial_s > self._steps_until_s
        planned = self._selection.next_round(self.trials, late=late)
        over = time.monotonic() + len(planned) * trial_s > self._until_s
        if not (over and late):
            return planned
        self._selection.finish(self.trials)
        return () if self._strict else self._selection.next_round(self.trials, late=True)

    def _trial_s(self) -> float:
        """How long a trial takes: the mean of those that are done; before any, what is expected."""
        took_s = [trial.duration_s for trial in self.trials if trial.duration_s is not None]
        return fmean(took_s) if took_s else self._expected_s

    def result(self, why_ended: str = "") -> tuple[Verification | None, str]:
        """What was tried, or why nothing was; `why_ended` where it was cut short, and nobody waits for pixels then."""
        selection = self._selection
        selection.finish(self.trials)
        if not self.trials:
            return None, why_ended or (selection.ended if self._wanted else CALLS_FOR_NONE)
        pairs = [(self._present, selection.config), *((tried.against, tried.config) for tried in selection.tried)]
        whole, *each = [None] * len(pairs) if why_ended else self._psnr(pairs)
        tried = [replace(tried, psnr_db=psnr_db) for tried, psnr_db in zip(selection.tried, each, strict=True)]
        return Verification(
            present=self._present,
            config=selection.config,
            tried=tuple(tried),
            trials=tuple(self.trials),
            ended=why_ended or selection.ended,
            psnr_db=whole,
        ), ""


def _expected_s(plan: Plan, present: Config, sweep: Sequence[Trial]) -> float:
    """What a trial will take: as long for its start and warm-up as in the sweep, where large batches take seconds."""
    beside_s = [
        trial.duration_s - trial.steady_s
        for trial in sweep
        if trial.config == present and trial.duration_s is not None and trial.steady_s is not None
    ]
    return max(plan.verify_trial_s, fmean(beside_s) + plan.verify_steady_s) if beside_s else plan.verify_trial_s
