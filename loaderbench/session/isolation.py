"""Plans and measures the isolation runs of the configuration that the verdict is about."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from loaderbench.loaders import prefetch_of
from loaderbench.plan import isolation_left_out, isolation_seconds
from loaderbench.ranks import process_count
from loaderbench.recorder.measure import FEWEST_BATCHES, batches_wanted
from loaderbench.records import Config, PlannedTrial, Reasons, Trial
from loaderbench.session.conditions import Conditions
from loaderbench.session.listener import Progress
from loaderbench.session.session import Session
from loaderbench.session.time_left import mean_trial_s
from loaderbench.statistics.configurations import rates_by_round

FILES_SHARE = 8
"""Files to read vs an end-to-end trial of the same length: warm-up needs some, and a loader alone is faster."""

_SECOND_PASS = "and a second pass would find a warm page cache"


@dataclass(frozen=True)
class IsolationPlan:
    """The isolation trials in run order, and why other isolation runs are left out.

    `files` limits how many files of an image folder the loader alone reads; `None` means all.
    """

    trials: tuple[PlannedTrial, ...] = ()
    left_out: Reasons = field(default_factory=dict)
    files: int | None = None


def measure_isolation(session: Session, subject: Config | None) -> None:
    """Measure the isolation runs of the subject, unless none apply or no time is left."""
    found, plan, sweep = session.found, session.plan, session.found.of("sweep")
    session.step = "isolation"
    if why := session.why_no_later_step:
        found.left_out["isolation"] = why
        return
    planned = plan_isolation(session.conditions, subject, sweep)
    found.left_out |= planned.left_out
    if planned.trials and session.is_late(len(planned.trials) * plan.isolation_s):
        found.left_out["isolation"] = f"{session.budget_used_up} left no time for isolation runs"
        return
    session.measuring.files_alone = planned.files

    def progress(done: int) -> Progress:
        return session.time_left.in_isolation(done, len(planned.trials), found.of("isolation"), sweep)

    for number, trial in enumerate(planned.trials):
        if any(done.isolation == trial.isolation and done.status != "completed" for done in found.of("isolation")):
            continue  # the trial would fail or hang again
        if session.is_late(mean_trial_s(found.of("isolation"), plan.isolation_s)):
            _note_not_reached(session, planned.trials[number:])
            return
        session.listener.trial_started(trial, progress(number))
        measured = session.measure(trial)
        session.listener.trial_ended(measured, progress(number + 1))


def _note_not_reached(session: Session, left: Sequence[PlannedTrial]) -> None:
    """Record why isolation runs that were not reached in any round have no result."""
    measured = {done.isolation for done in session.found.of("isolation")}
    for name in sorted({one.isolation for one in left if one.isolation} - measured):
        session.found.left_out[name] = f"{session.budget_used_up} left no time for it"


def plan_isolation(conditions: Conditions, config: Config | None, trials: Sequence[Trial]) -> IsolationPlan:
    """The isolation runs of a configuration after the sweep of these trials, shuffled within each round."""
    if config is None:
        return IsolationPlan(left_out={"isolation": "nothing was measured"})
    suite, plan = conditions.loaded.suite, conditions.plan
    files, too_short = _one_pass(conditions, config, trials)
    reasons = isolation_left_out(suite, conditions.consumer, conditions.accelerator, too_short, config)
    if why := suite.dataset.why_not_on_device({**suite.loader, **config}):
        reasons["replay_device"] = reasons["replay_device"] or why
    used = [trial for trial in trials if trial.config == config and trial.status == "completed"]
    if (
        conditions.accelerator
        and used
        and not any(gpu.peak_reserved_bytes != 0 for trial in used for gpu in trial.gpus)
    ):
        reasons["replay_device"] = reasons["replay_device"] or "the step used no GPU memory"
    names = [name for name, why in reasons.items() if not why]
    order = random.Random(plan.seed)
    planned = []
    for number in range(1, plan.isolation_rounds + 1):
        order.shuffle(names)
        planned += [plan.isolation(name, config, number) for name in names]
    return IsolationPlan(tuple(planned), {name: why for name, why in reasons.items() if why}, files)


def _one_pass(conditions: Conditions, config: Config, trials: Sequence[Trial]) -> tuple[int | None, str]:
    """How many files the loader alone reads, and why one pass over them is too short for a steady state, if it is.

    The number is the same for warm and cold runs, and small enough to read the files again in each run. A file can
    hold many samples, so the samples per epoch come from the sweep's trials.
    """
    suite = conditions.loaded.suite
    all_files = len(conditions.inputs.samples(suite.dataset.with_axes(config)))
    sizes = [
        (trial.samples_per_epoch, trial.samples / trial.batches)
        for trial in trials
        if trial.config == config and trial.samples_per_epoch and trial.samples and trial.batches
    ]
    if not sizes or not all_files:
        return None, f"samples per pass over the files are unknown, {_SECOND_PASS}"
    epoch, batch = sizes[-1]
    ahead = prefetch_of(suite.loader, config).batches or 0
    rate = max(rates_by_round(config, trials).values(), default=0.0)
    ranks = process_count(config)
    at_least = ranks * (ahead + batches_wanted(math.ceil(batch))) * batch
    wanted = FILES_SHARE * rate * isolation_seconds(suite) + at_least
    files = min(all_files, math.ceil(wanted * all_files / epoch))
    batches = int(files * epoch / (all_files * batch * ranks))
    if batches > max(1, ahead) + FEWEST_BATCHES:
        return files, ""
    held = f"{files:,} file{'s' * (files != 1)} = {batches} batch{'es' * (batches != 1)}"
    read = f", workers prefetch {ahead}" if ahead else ""
    read += f", in each of {ranks} ranks" if ranks > 1 else ""
    return files, f"too few files for a steady state ({held}{read}), {_SECOND_PASS}"
