"""Derives the arguments to use from a run over a script's loader."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from loaderbench.diagnosis.failures import last_words
from loaderbench.diagnosis.gathering import gather
from loaderbench.diagnosis.limits import disturbed
from loaderbench.records import Config, Configuration, Interval, Recommendation, RunRecord
from loaderbench.records.words import count
from loaderbench.report import numbers
from loaderbench.statistics.configurations import PRACTICAL_TIE
from loaderbench.statistics.faster_arguments import (
    changed_arguments,
    faster_arguments,
    fastest_others,
    rounds_in_common,
)
from loaderbench.statistics.open_fixes import OpenFix, open_fixes
from loaderbench.tuning.open_fixes import arguments as arguments_in_words, why_none as why_not_included

AS_FAST = "no other arguments were faster"
NO_DECISION = "too few trials were completed to compare"


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """Arguments to use instead of `present`, and the ratio of samples/s that they reached in paired trials.

    If nothing should change, both are the same, `gain` is `None`, and `why_none` gives the reason. `folder` is the run
    folder; `None` if nothing could be measured. `present_samples_per_s` is the rate of the current arguments in trials.
    `samples_per_s` is that of other arguments, if they were chosen in trials with the emulated step.
    `others_cpus` is the number of CPUs that other programs used, if the trials lacked them. `left` are fixes that may
    gain more, except for one named in `why_none`. `caveats` and `costs` belong to the changes. `worker_init_fn` is the
    name of the loader's own function, which trials called as well; empty if it has none.
    """

    present: Config
    arguments: Config
    gain: Interval | None = None
    pairs: int = 0
    why_none: str = ""
    folder: Path | None = None
    present_samples_per_s: float | None = None
    samples_per_s: float | None = None
    others_cpus: float | None = None
    left: tuple[OpenFix, ...] = ()
    caveats: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    worker_init_fn: str = ""

    @property
    def changed(self) -> Config:
        """The arguments that differ from the current ones; arguments not given have torch's defaults."""
        return changed_arguments(self.present, self.arguments)

    @property
    def is_decided(self) -> bool:
        """Whether enough was measured to know which arguments are faster, or that none are."""
        return self.why_none in ("", AS_FAST)

    @property
    def holds_later(self) -> bool:
        """Whether the result is decided, and was not disturbed by other programs, which may end."""
        return self.is_decided and self.others_cpus is None


def tuned_by(run: RunRecord, present: Config, folder: Path) -> Tuned:
    """The result of the fixes on top of the sweep, else of the sweep, else the current arguments."""
    why_none, left = _why_none(run), open_fixes(run, run.plan.baseline)
    if why_none == AS_FAST and left:
        why_none, left = why_not_included(left[0]), left[1:]
    unchanged = Tuned(
        present=present,
        arguments=present,
        why_none=why_none,
        folder=folder,
        present_samples_per_s=present_rate(run),
        others_cpus=_missing_cpus(run),
        left=left,
    )
    found = faster_arguments(run)
    if found is None:
        return unchanged
    config = found.config
    arguments = {**run.loader, **config}
    arguments.pop("batch_size", None)
    if not arguments.get("num_workers"):
        arguments = {
            name: value for name, value in arguments.items() if name not in ("prefetch_factor", "persistent_workers")
        }
    advised = _recommendations_behind(run, config)
    tuned = replace(
        unchanged,
        arguments=arguments,
        gain=found.gain,
        pairs=found.pairs,
        samples_per_s=None if found.by_fixes else _rate_of(run, config),
        why_none="",
        left=open_fixes(run, config),
        caveats=tuple(dict.fromkeys(advice.caveat for advice in advised if advice.caveat)),
        costs=tuple(dict.fromkeys(cost for advice in advised for cost in advice.costs)),
    )
    return tuned if tuned.changed else unchanged


def _missing_cpus(run: RunRecord) -> float | None:
    """CPUs that other programs used while the current arguments were measured; `None` if no CPU was missing."""
    facts = gather([trial for trial in run.sweep if trial.config == run.plan.baseline], run.environment)
    return facts.others_cpus if facts is not None and disturbed(facts) else None


def _recommendations_behind(run: RunRecord, config: Config) -> list[Recommendation]:
    """The recommendations behind this configuration. One that covers all of it replaces its measured parts."""
    changed = {axis: value for axis, value in config.items() if run.plan.baseline.get(axis) != value}
    parts = [
        advice
        for advice in run.recommendations
        if advice.status == "open" and advice.change and advice.change.items() <= changed.items()
    ]
    whole = next((advice for advice in parts if advice.basis == "measured" and advice.change == changed), None)
    return parts if whole is None else [whole, *(advice for advice in parts if advice.basis != "measured")]


def present_rate(run: RunRecord) -> float | None:
    """Samples/s of the current arguments in trials; `None` if no trial was completed."""
    return _rate_of(run, run.plan.baseline)


def _rate_of(run: RunRecord, config: Config) -> float | None:
    return next((_rate(one) for one in run.configurations if one.config == config), None)


def _rate(one: Configuration) -> float | None:
    return one.samples_per_s.est if one.samples_per_s else None


def _why_none(run: RunRecord) -> str:
    """Why nothing changes: no difference, a difference hidden by noise or too few rounds, or nothing measurable."""
    fastest = fastest_others(run)
    if run.best is None or fastest is None:
        most = Counter(last_words(trial.failure.message) for trial in run.sweep if trial.failure).most_common(1)
        if not most:
            return f"{NO_DECISION}; use a longer budget"
        message, failed = most[0]
        return f"{NO_DECISION}; {count(failed, 'trial')} failed: {message}"
    config, ratio = fastest
    if ratio <= 1 + PRACTICAL_TIE:
        return AS_FAST
    maybe, rounds = numbers.gain(ratio, None, None).main, rounds_in_common(run, config)
    within = f"within the noise of {count(rounds, 'round')}; use a longer budget"
    return f"{arguments_in_words(config)} may be faster ({maybe}), but {within}"
