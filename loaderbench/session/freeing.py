"""The step that makes each stage of the verdict's configuration free, one at a time, in time-sliced rounds of trials.

Worker counts missing from the sweep are measured in the same rounds.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from loaderbench.conclusion import conclude
from loaderbench.diagnosis.bottlenecks import (
    BLOCKED_READS,
    describe_bottlenecks,
    shares_of_sample,
    stages_to_free,
)
from loaderbench.diagnosis.gathering import gather
from loaderbench.diagnosis.worker_settings import (
    KEY,
    change_of,
    describe_worker_settings,
    of_setting,
    settings_to_measure,
)
from loaderbench.freeing import Freeing
from loaderbench.loaders import worker_count
from loaderbench.plan import FREED_ROUNDS, FREED_SECONDS, FREED_TRIAL_S, TRIAL_START_S, WARMUP_SHARE
from loaderbench.ranks import rank_count
from loaderbench.records import Config, Interval, PlannedTrial, Reasons, Trial, config_label
from loaderbench.session.listener import Progress
from loaderbench.session.measuring import is_alone
from loaderbench.session.session import NO_VERIFY, Session
from loaderbench.session.time_slicing import SlicedRounds
from loaderbench.statistics.intervals import excludes_one
from loaderbench.statistics.judging import SMALL

FILLING_S = 0.4
"""Seconds that each loading process spends making the samples it keeps."""

FEWEST_KEPT, MOST_KEPT = 8, 64
MOST_ROUNDS = 5
AFTER_STAGES = 2
"""Other worker counts are tried after this many of the most promising stages, which show where the limit is."""

BUDGET_SHARE = 0.4
"""Share of the remaining budget; fixes get the rest."""

NO_TIME = "no time left for this stage"
KEEPS_UP = "the loader keeps up"
OWN_LOADER = "tune measures arguments and fixes instead"
_RANKS = "several ranks load at the same time"


def measure_bottlenecks(session: Session, subject: Config | None) -> None:
    """Measure the subject with each stage made free, as far as time allows."""
    session.step = "freed"
    found, why = session.found, _why_not(session, subject)
    if why or subject is None:
        found.left_out["bottlenecks"] = why
        return
    sweep = [trial for trial in found.of("sweep") if trial.config == subject]
    stages, reasons = stages_to_free(sweep, worker_count(subject, session.conditions.loaded.suite.loader))
    variants = [_Variant(subject, stage) for stage in stages]
    variants[AFTER_STAGES:AFTER_STAGES] = [_Variant(other) for other in _other_workers(session, subject, sweep)]
    step = FreeingStep(session, subject, variants, _until_s(session), _expected_s(session, sweep))
    found.left_out |= reasons | step.left_out
    session.measuring.freeing = freeing_of(sweep, cold=session.conditions.loaded.suite.measure.cache == "cold")
    step.run()


def _why_not(session: Session, subject: Config | None) -> str:
    suite = session.conditions.loaded.suite
    if session.why_no_later_step:
        return session.why_no_later_step
    if not suite.measure.verify:
        return NO_VERIFY
    if suite.dataset.is_of_script:
        return OWN_LOADER
    if subject is None:
        return "nothing was measured"
    if rank_count(subject) is not None:
        return _RANKS
    return KEEPS_UP if conclude(session.so_far()).verdict.bound == "compute" else ""


def _until_s(session: Session) -> float:
    """The monotonic time by which the last round must end; within a budget, some time is reserved for fixes."""
    now_s, takes_s = time.monotonic(), session.plan.freed_s
    if session.deadline_s is None:
        return now_s + takes_s
    return now_s + min(takes_s, BUDGET_SHARE * (session.deadline_s - now_s))


def _expected_s(session: Session, sweep: Sequence[Trial]) -> float:
    """Expected seconds per trial, including the extra start time seen in the sweep's trials."""
    starts_s = [
        trial.duration_s - (1 + WARMUP_SHARE) * trial.steady_s
        for trial in sweep
        if trial.duration_s is not None and trial.steady_s is not None
    ]
    slower_s = max(0.0, fmean(starts_s) - TRIAL_START_S) if starts_s else session.plan.start_s
    return FREED_TRIAL_S + slower_s


def freeing_of(trials: Sequence[Trial], *, cold: bool) -> Freeing:
    """How many samples a stage is made free over, from the sweep's trials of one configuration.

    `cold` means that files must come from storage.
    """
    shares, _, sample_s = shares_of_sample(trials)
    kept = int(FILLING_S / sample_s) if sample_s > 0 else FEWEST_KEPT
    slow_reads = shares.get("read", 0.0) > BLOCKED_READS
    return Freeing(None, max(FEWEST_KEPT, min(MOST_KEPT, kept)), repeats_files=not (cold or slow_reads))


def _is_small(gain: Interval) -> bool:
    return gain.hi is not None and gain.hi <= SMALL


def _other_workers(session: Session, subject: Config, sweep: Sequence[Trial]) -> tuple[Config, ...]:
    conditions = session.conditions
    facts = gather(sweep, conditions.environment)
    return (
        settings_to_measure(subject, conditions.loaded.suite.loader, facts, session.found.of("sweep")) if facts else ()
    )


@dataclass(frozen=True)
class _Variant:
    """A configuration to compare with the subject: one stage made free, or other worker settings."""

    config: Config
    freed: str | None = None


@dataclass
class FreeingStep:
    """Rounds of the unchanged loader and one trial of each variant, in random order."""

    session: Session
    config: Config
    variants: list[_Variant]
    until_s: float
    trial_s: float

    def __post_init__(self) -> None:
        dropped = self._drop_late_variants(FREED_ROUNDS)
        self.left_out: Reasons = {self._key(one): NO_TIME for one in dropped}
        self._random = random.Random(self.session.plan.seed)

    def _drop_late_variants(self, rounds: int) -> list[_Variant]:
        """Leave out the least promising variants if `rounds` rounds of all of them would take too long."""
        most = max(0, int((self.until_s - time.monotonic()) / (rounds * self.trial_s)) - 1)
        dropped, self.variants = self.variants[most:], self.variants[:most]
        return dropped

    def run(self) -> None:
        """Measure rounds until the gains are known, the variants run out, or time is up."""
        conditions = self.session.conditions
        rounds = SlicedRounds(self.session.measuring, lambda planned: is_alone(planned, conditions), FREED_SECONDS)
        number = 0
        while self.variants and not self._is_decided(number):
            number, began_s = number + 1, time.monotonic()
            planned = [self._planned(number, variant) for variant in (_Variant(self.config), *self.variants)]
            self._random.shuffle(planned)
            self.session.measure_round(rounds, planned, self._progress)
            self.trial_s = (time.monotonic() - began_s) / len(planned)
            self._drop_failed()
            self._drop_late_variants(max(1, FREED_ROUNDS - number))

    def _is_decided(self, number: int) -> bool:
        """Whether to stop: each gain excludes 1, is small or is decided, or `MOST_ROUNDS` rounds are measured."""
        if number < FREED_ROUNDS:
            return False
        loader, trials = self.session.conditions.loaded.suite.loader, self.session.found.of("freed")
        found, _ = describe_bottlenecks([trial for trial in trials if trial.config == self.config], {})
        gains = [one.gain_if_free for one in found] + [part.gain_if_free for one in found for part in one.parts]
        settings, _ = describe_worker_settings(trials, self.config, loader, {})
        decided = all(of_setting(one, self.config, loader).is_decided for one in settings)
        known = decided and all(excludes_one(gain) or _is_small(gain) for gain in gains)
        return known or number >= MOST_ROUNDS

    def _drop_failed(self) -> None:
        trials = self.session.found.of("freed")
        failed = [_Variant(trial.config, trial.freed) for trial in trials if trial.status != "completed"]
        unchanged_failed = _Variant(self.config) in failed
        self.variants = [] if unchanged_failed else [one for one in self.variants if one not in failed]

    def _planned(self, number: int, variant: _Variant) -> PlannedTrial:
        name = (variant.freed or self._label(variant) or "present").replace("/", "-")
        return PlannedTrial(
            id=f"s{number}-{name}", role="freed", config=variant.config, round=number, freed=variant.freed
        )

    def _label(self, variant: _Variant) -> str:
        return config_label(change_of(variant.config, self.config))

    def _key(self, variant: _Variant) -> str:
        return f"bottlenecks.{variant.freed}" if variant.freed else KEY + self._label(variant)

    def _progress(self) -> Progress:
        found = self.session.found
        return self.session.time_left.in_freeing(len(found.of("freed")), self.until_s, found.of("sweep"))
