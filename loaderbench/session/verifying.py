"""The step that tries fixes: which ones, for which configuration, for how long, and how much they change pixels.

Fixes that would not fit this machine are adjusted: fewer bytes in flight, or another sharing strategy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from loaderbench.conclusion import candidates
from loaderbench.diagnosis.failures import TOO_MANY_FILES
from loaderbench.ending_signals import put_off_signals
from loaderbench.errors import MissingError, Terminated
from loaderbench.loaders import AXIS, backend_of, prefetch_of
from loaderbench.loaders.worker_options import SHARING
from loaderbench.plan import FREED_TRIAL_S, MOST_VERIFY_S, Plan
from loaderbench.records import Candidate, Config, PixelChange, PlannedTrial, Trial, Verification
from loaderbench.search import MOST_CANDIDATES, Propose, StepwiseSelection, why_pruned
from loaderbench.session.listener import Progress
from loaderbench.session.measuring import is_alone
from loaderbench.session.session import NO_VERIFY, Session
from loaderbench.session.time_left import mean_trial_s
from loaderbench.session.time_slicing import SlicedRounds
from loaderbench.statistics.judging import ENOUGH_PAIRS, judged
from loaderbench.suite import Suite
from loaderbench.suite.model import batch_bytes, prefetched_bytes

STEPS_SHARE = 0.8
"""Share of the time for trying fixes; the rest is for a combination, or for comparing the result with the baseline."""

COMBINING_SHARE = 0.5
"""How far a combination that has begun may exceed the time, as a share of it."""

LEAST_SHARE = 0.5  # of the planned time for fixes

MOST_OF_PLAN = 1.15
"""Limit for the run, as a multiple of the time that the plan expects."""

CALLS_FOR_NONE = "no fix for this cause can be tried in a trial"

ComparePixels = Callable[[Sequence[tuple[Config, Config]]], Sequence[PixelChange]]
"""How much the samples of each pair of configurations differ."""


def try_remedies(session: Session, subject: Config | None) -> None:
    """Try fixes for the subject, round after round, until none are left or time is up."""
    if why := _why_not(session, subject):
        session.found.left_out["verification"] = why
    if why or subject is None:
        return
    step = RemedyStep(session, subject)
    try:
        step.run()
        step.end()
    except (KeyboardInterrupt, Terminated):
        put_off_signals(session.found.late_signals)
        step.end("interrupted")
        raise


def _why_not(session: Session, subject: Config | None) -> str:
    if session.why_no_later_step:
        return session.why_no_later_step
    if not session.conditions.loaded.suite.measure.verify:
        return NO_VERIFY
    return "nothing was measured" if subject is None else ""


def until_s(plan: Plan, subject: Config, sweep: Sequence[Trial], began_s: float, freed: Sequence[Trial] = ()) -> float:
    """The monotonic time after which no more fixes are tried, for a suite without a budget.

    `began_s` is the start of the run. A slow sweep leaves less time, but at least half, and enough for one fix. After
    a CUDA start longer than planned, as many fixes are tried as otherwise. If the free-stage trials (`freed`) took
    longer than planned, as with large batches, fixes get proportionally more of the time that the run has left.
    """
    now_s = time.monotonic()
    if plan.start_s:
        plan = plan.with_start(_expected_s(plan, subject, sweep) - plan.verify_trial_s)
    one_fix_s = 2 * ENOUGH_PAIRS * _expected_s(plan, subject, sweep) / STEPS_SHARE
    allowed_s = began_s + MOST_OF_PLAN * plan.estimated_with_fixes_s - now_s
    slower = max(1.0, mean_trial_s(freed, FREED_TRIAL_S) / FREED_TRIAL_S)
    verify_s = slower * plan.verify_s
    return now_s + min(MOST_VERIFY_S, verify_s, max(one_fix_s, LEAST_SHARE * verify_s, allowed_s))


class RemedyStep:
    """The last step of a session: rounds of trials that a `Verifier` proposes, saved and shown as each trial ends."""

    def __init__(self, session: Session, subject: Config) -> None:
        self._session, self._found = session, session.found
        sweep = session.found.of("sweep")
        deadline_s = session.deadline_s
        freed = session.found.of("freed")
        end_s = until_s(session.plan, subject, sweep, session.began_s, freed) if deadline_s is None else deadline_s
        self._rounds = SlicedRounds(session.measuring, lambda planned: is_alone(planned, session.conditions))
        self._verifier = Verifier(
            session.plan,
            subject,
            self._candidates,
            session.measuring.pixel_changes,
            until_s=end_s,
            strict=session.budget_s is not None,
            sweep=sweep,
        )
        session.step = "remedies"

    def _candidates(self, config: Config) -> Sequence[Candidate] | None:
        """The fixes that the cause calls for, adjusted to fit in memory."""
        found, conditions = candidates(self._session.so_far(), config), self._session.conditions
        fitting = Fitting(
            conditions.loaded.suite, self._found.of("sweep", "remedy"), conditions.environment.shm_total_bytes
        )
        return found and [
            fits
            for one in found
            if (fits := fitting.fitted(one, config)) is not None
            and self._is_prepared(fits, config)
            and self._gives_the_same(fits, config)
        ]

    def _is_prepared(self, candidate: Candidate, config: Config) -> bool:
        """Whether the files that the candidate reads could be written; a remark says why not."""
        if candidate.id not in self._found.remarks:
            try:
                changed = {**config, **candidate.change}
                self._session.measuring.write_copies([changed], self._session.budget_until_s)
            except MissingError as error:
                self._found.remarks[candidate.id] = f"not tried: {candidate.id}: {error}"
        return candidate.id not in self._found.remarks

    def _gives_the_same(self, candidate: Candidate, config: Config) -> bool:
        """Whether a candidate's loader returns the same batches as the present one; each loader is compared once."""
        if AXIS not in candidate.change:
            return True
        changed = {**config, **candidate.change}
        known = [found for found in self._found.parity if found.loader == changed[AXIS]]
        if not known:
            known = [self._session.measuring.parity(changed, config)]
            self._found.parity += (known[0],)
        return not known[0].refused

    def run(self) -> None:
        """Measure rounds until no fix is left or time is up."""
        while planned := self._verifier.next_round(self._found.of("remedy")):
            self._session.measure_round(self._rounds, planned, self._progress)

    def end(self, why_ended: str = "") -> None:
        """Record the verification, or why nothing was tried."""
        self._found.verification, why_none = self._verifier.result(self._found.of("remedy"), why_ended)
        if why_none:
            self._found.left_out["verification"] = why_none

    def _progress(self) -> Progress:
        tried, sweep = len(self._found.of("remedy")), self._found.of("sweep")
        return self._session.time_left.in_fixes(tried, self._verifier.until_s, sweep)


class Verifier:
    """Proposes trials of fixes for one configuration and summarizes their results.

    `propose` returns the fixes for a configuration, and can write the files that they read. `until_s` is the monotonic
    time after which nothing more is tried. The seconds spent in `propose` are added to it, and the result is compared
    with the baseline after it; with a budget, which is `strict`, neither is done. `sweep` shows how long a trial takes.
    """

    def __init__(
        self,
        plan: Plan,
        present: Config,
        propose: Propose,
        compare_pixels: ComparePixels,
        *,
        until_s: float,
        strict: bool = False,
        sweep: Sequence[Trial] = (),
    ) -> None:
        self._plan, self._present, self._compare_pixels, self._strict = plan, present, compare_pixels, strict
        now_s = time.monotonic()
        self.until_s, self._steps_until_s = until_s, now_s + STEPS_SHARE * (until_s - now_s)
        self._combined_until_s = until_s + (0.0 if strict else COMBINING_SHARE * (until_s - now_s))
        self._expected_s = _expected_s(plan, present, sweep)
        rounds_s = ENOUGH_PAIRS * self._expected_s
        most = min(MOST_CANDIDATES, max(1, int(STEPS_SHARE * (until_s - now_s) / rounds_s) - 1))
        propose = propose if strict else self._extending_deadlines(propose)
        self._selection = StepwiseSelection(present, plan.baseline, propose, seed=plan.seed, most=most)
        self._wanted = bool(self._selection.candidates)

    def _extending_deadlines(self, propose: Propose) -> Propose:
        """Wrap `propose` to extend the deadlines by the seconds spent in it."""

        def proposed(config: Config) -> Sequence[Candidate] | None:
            began_s = time.monotonic()
            found = propose(config)
            took_s = time.monotonic() - began_s
            self.until_s += took_s
            self._steps_until_s += took_s
            self._combined_until_s += took_s
            return found

        return proposed

    def next_round(self, done: Sequence[Trial]) -> Sequence[PlannedTrial]:
        """The next round; empty when everything has been tried or time is up."""
        trial_s = mean_trial_s(done, self._expected_s)
        self._selection.keep_what_fits(done, (self._steps_until_s - time.monotonic()) / trial_s)
        late = time.monotonic() + (1 + len(self._selection.candidates)) * trial_s > self._steps_until_s
        planned = self._selection.next_round(done, late=late)
        until_s = self._combined_until_s if self._selection.combines else self.until_s
        over = time.monotonic() + len(planned) * trial_s > until_s
        if not (over and late):
            return planned
        self._selection.finish(done)
        return () if self._strict else self._selection.next_round(done, late=True)

    def result(self, done: Sequence[Trial], why_ended: str = "") -> tuple[Verification | None, str]:
        """The verification, or why nothing was tried. If cut short (`why_ended`), no pixels are compared."""
        selection = self._selection
        selection.finish(done)
        if not done:
            return None, why_ended or (selection.ended if self._wanted else CALLS_FOR_NONE)
        pairs = [(self._plan.baseline, selection.config), *((tried.against, tried.config) for tried in selection.tried)]
        cut_short = PixelChange(None, why_ended)
        whole, *each = [cut_short] * len(pairs) if why_ended else self._compare_pixels(pairs)
        tried = [
            replace(tried, psnr_db=found.psnr_db, not_measured={**tried.not_measured, **found.not_measured})
            for tried, found in zip(selection.tried, each, strict=True)
        ]
        found = Verification(
            present=self._present,
            config=selection.config,
            tried=tuple(tried),
            ended=why_ended or selection.ended,
            psnr_db=whole.psnr_db,
            not_measured=whole.not_measured,
        )
        return judged(found, done, self._plan.baseline), ""


def _expected_s(plan: Plan, present: Config, sweep: Sequence[Trial]) -> float:
    """Expected seconds per trial; start and warm-up as in the sweep, where large batches can take seconds."""
    overheads_s = [
        trial.duration_s - trial.steady_s
        for trial in sweep
        if trial.config == present and trial.duration_s is not None and trial.steady_s is not None
    ]
    return max(plan.verify_trial_s, fmean(overheads_s) + plan.verify_steady_s) if overheads_s else plan.verify_trial_s


HALVINGS = 2
"""Maximum halvings of the batch size: a much smaller batch changes the training."""


@dataclass(frozen=True)
class Fitting:
    """What fits on this machine, judged by the trials so far. `shm_total_bytes` is the size of /dev/shm, or `None`."""

    suite: Suite
    done: Sequence[Trial]
    shm_total_bytes: int | None

    def fitted(self, candidate: Candidate, config: Config) -> Candidate | None:
        """The candidate with the fewest further changes that make it fit; `None` if no change does."""
        changed = {**config, **candidate.change}
        if self._is_possible(changed):
            return candidate
        for further in self._with_less(changed):
            smaller = {**changed, **further}
            if self._is_possible(smaller) and self._leaves_room(smaller):
                return replace(candidate, change={**candidate.change, **further})
        return None

    def _is_possible(self, config: Config) -> bool:
        return why_pruned(config, self.done, lambda found: prefetched_bytes(self.suite, found)) is None

    def _ran_out_of_files(self) -> bool:
        return any(trial.failure is not None and trial.failure.kind == TOO_MANY_FILES for trial in self.done)

    def _leaves_room(self, config: Config) -> bool:
        """Whether /dev/shm holds all batches in flight plus the batch being consumed."""
        ahead, one = prefetched_bytes(self.suite, config), batch_bytes(self.suite, config)
        return ahead is None or one is None or self.shm_total_bytes is None or ahead + one <= self.shm_total_bytes

    def _with_less(self, config: Config) -> Iterator[Config]:
        """Changes that reduce the bytes in flight, starting with the one that costs the user least."""
        if SHARING in backend_of({**self.suite.loader, **config}).worker_options and self._ran_out_of_files():
            yield {SHARING: "file_system"}
        found, dataset = prefetch_of(self.suite.loader, config), self.suite.dataset.with_axes(config)
        smaller = dataset.with_axes(dataset.smaller_samples).sample_bytes()
        shrinks = smaller is not None and smaller < (dataset.sample_bytes() or 0)
        samples: Config = dict(dataset.smaller_samples) if shrinks else {}
        shallow: Config = {"prefetch_factor": 1} if found.workers and (found.batches_per_worker or 0) > 1 else {}
        yield from filter(None, (samples, shallow, {**samples, **shallow} if samples and shallow else {}))
        for power in range(1, HALVINGS + 1):
            if found.batch_size and found.batch_size >= 2**power:
                yield {**samples, **shallow, "batch_size": found.batch_size // 2**power}
