"""What a run over a script's loader says about its arguments."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from loaderbench.diagnosis.failures import last_words
from loaderbench.diagnosis.gathering import gather
from loaderbench.diagnosis.limits import disturbed
from loaderbench.loaders.torch_loader import PREFETCH
from loaderbench.records import Config, Configuration, Interval, Recommendation, RunRecord
from loaderbench.report import numbers
from loaderbench.statistics.configurations import PRACTICAL_TIE
from loaderbench.statistics.intervals import at_another_time, is_above_one
from loaderbench.tuning.open_fixes import OpenFix, arguments as arguments_in_words, open_fixes

AS_FAST = "no other arguments were faster"
DEFAULTS: Config = {"prefetch_factor": PREFETCH, "persistent_workers": False}
"""What torch takes with workers."""

NO_DECISION = "too few trials were completed to compare"


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """Arguments to use in place of `present`, and the ratio of samples/s that they gained in paired trials.

    Both are the same, and `gain` is `None`, where `why_none` says why nothing is to be changed. `folder` is the run
    folder; `None` where nothing could be measured. `present_samples_per_s` is the rate of the present arguments in
    trials. `others_cpus` are the CPUs of other programs, if the trials lacked them. `left` are fixes that may gain
    more, except for one that `why_none` names. `caveats` and `costs` are those of what is to be changed.
    `worker_init_fn` is the name of the loader's own, which trials called as well; empty where it has none.
    """

    present: Config
    arguments: Config
    gain: Interval | None = None
    pairs: int = 0
    why_none: str = ""
    folder: Path | None = None
    present_samples_per_s: float | None = None
    others_cpus: float | None = None
    left: tuple[OpenFix, ...] = ()
    caveats: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    worker_init_fn: str = ""

    @property
    def changed(self) -> Config:
        """The arguments that differ from the present ones, which are torch's defaults where they are not given."""
        now = {**DEFAULTS, **self.present}
        return {name: value for name, value in {**self.arguments, **self._left_out}.items() if now.get(name) != value}

    @property
    def _left_out(self) -> Config:
        """What torch refuses without workers, where it is given now."""
        if self.arguments.get("num_workers") or not self.present.get("num_workers"):
            return {}
        return {"prefetch_factor": None, "persistent_workers": False}

    @property
    def is_decided(self) -> bool:
        """Whether enough was measured to know which arguments are faster, or that none are."""
        return self.why_none in ("", AS_FAST)

    @property
    def holds_later(self) -> bool:
        """Whether it is decided, and not because of other programs, which may end."""
        return self.is_decided and self.others_cpus is None


def tuned_by(run: RunRecord, present: Config, folder: Path) -> Tuned:
    """What the fixes gained on top of the sweep, else what the sweep found, else the present arguments."""
    why_none, left = _why_none(run), open_fixes(run, run.plan.baseline)
    if why_none == AS_FAST and left:
        why_none, left = left[0].why_none, left[1:]
    unchanged = Tuned(
        present=present,
        arguments=present,
        why_none=why_none,
        folder=folder,
        present_samples_per_s=present_rate(run),
        others_cpus=_missing_cpus(run),
        left=left,
    )
    found = _of_fixes(run) or _of_sweep(run)
    if found is None:
        return unchanged
    config, gain, pairs = found
    arguments = {**run.loader, **config}
    arguments.pop("batch_size", None)
    if not arguments.get("num_workers"):
        arguments = {
            name: value for name, value in arguments.items() if name not in ("prefetch_factor", "persistent_workers")
        }
    advised = _advised(run, config)
    tuned = replace(
        unchanged,
        arguments=arguments,
        gain=at_another_time(gain),
        pairs=pairs,
        why_none="",
        left=open_fixes(run, config),
        caveats=tuple(dict.fromkeys(advice.caveat for advice in advised if advice.caveat)),
        costs=tuple(dict.fromkeys(cost for advice in advised for cost in advice.costs)),
    )
    return tuned if tuned.changed else unchanged


def _missing_cpus(run: RunRecord) -> float | None:
    """CPUs that other programs used while the present arguments were measured; `None` if these lacked none."""
    facts = gather([trial for trial in run.sweep if trial.config == run.plan.baseline], run.environment)
    return facts.others_cpus if facts is not None and disturbed(facts) else None


def _of_fixes(run: RunRecord) -> tuple[Config, Interval, int] | None:
    """All accepted fixes together; where time was too short to compare these, the largest gain of one alone."""
    found = run.verification
    if found is None:
        return None
    whole = found.whole
    if found.accepted and whole is not None and whole.answer != "undecided":
        return (found.config, whole.ratio, whole.pairs) if whole.answer == "gain" and whole.ratio else None
    gains = [
        (tried.config, tried.judgement.ratio, tried.judgement.pairs)
        for tried in found.tried
        if tried.against == run.plan.baseline
        and tried.judgement is not None
        and tried.judgement.ratio is not None
        and tried.judgement.answer == "gain"
    ]
    return max(gains, key=lambda gain: gain[1].est, default=None)


def _of_sweep(run: RunRecord) -> tuple[Config, Interval, int] | None:
    best = run.best
    if best is None or best.gain is None or not is_above_one(best.gain):
        return None
    return best.config, best.gain, run.plan.rounds


def _advised(run: RunRecord, config: Config) -> list[Recommendation]:
    """The recommendations that this configuration follows: one that says all of it, in place of its measured parts."""
    changed = {axis: value for axis, value in config.items() if run.plan.baseline.get(axis) != value}
    parts = [
        advice
        for advice in run.recommendations
        if advice.status == "open" and advice.change and advice.change.items() <= changed.items()
    ]
    whole = next((advice for advice in parts if advice.basis == "measured" and advice.change == changed), None)
    return parts if whole is None else [whole, *(advice for advice in parts if advice.basis != "measured")]


def present_rate(run: RunRecord) -> float | None:
    """Samples/s of the present arguments in trials; `None` where none was completed."""
    return next((_rate(one) for one in run.configurations if one.config == run.plan.baseline), None)


def _rate(one: Configuration) -> float | None:
    return one.samples_per_s.est if one.samples_per_s else None


def _why_none(run: RunRecord) -> str:
    """No difference, one that noise or too few rounds hide, or none that could be measured."""
    present = present_rate(run)
    rates = {rate: one.config for one in run.configurations if (rate := _rate(one))}
    failed = Counter(last_words(trial.failure.message) for trial in run.sweep if trial.failure)
    if run.best is None or not present or len(rates) < 2:
        most = failed.most_common(1)
        if not most:
            return f"{NO_DECISION}; use a longer budget"
        count = f"{most[0][1]} trial{'s' if most[0][1] > 1 else ''}"
        return f"{NO_DECISION}; {count} failed: {most[0][0]}"
    fastest = max(rates)
    if fastest <= (1 + PRACTICAL_TIE) * present:
        return AS_FAST
    changed = arguments_in_words(rates[fastest])
    maybe = numbers.gain(fastest / present, None, None).main
    return f"{changed} may be faster ({maybe}), but within the noise of {run.plan.rounds} rounds; use a longer budget"
