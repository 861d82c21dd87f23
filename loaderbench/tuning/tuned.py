"""Derives the arguments to use from a run over a script's loader."""

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
from loaderbench.statistics.configurations import PRACTICAL_TIE, rates_by_round, ratio_of
from loaderbench.statistics.gates import LEVEL_OF_LOOKS
from loaderbench.statistics.intervals import FEWEST_ROUNDS, LEVEL, at_another_time, is_above_one
from loaderbench.tuning.open_fixes import OpenFix, arguments as arguments_in_words, open_fixes

AS_FAST = "no other arguments were faster"
DEFAULTS: Config = {"prefetch_factor": PREFETCH, "persistent_workers": False}
"""torch's defaults with workers."""

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
        now = {**DEFAULTS, **self.present}
        return {
            name: value
            for name, value in {**self.arguments, **self._reset_without_workers}.items()
            if now.get(name) != value
        }

    @property
    def _reset_without_workers(self) -> Config:
        """Current arguments that torch refuses without workers, reset to its defaults."""
        if self.arguments.get("num_workers") or not self.present.get("num_workers"):
            return {}
        return {"prefetch_factor": None, "persistent_workers": False}

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
    by_fixes = _from_fixes(run)
    found = by_fixes or _from_sweep(run)
    if found is None:
        return unchanged
    config, gain, pairs = found
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
        gain=at_another_time(gain),
        pairs=pairs,
        samples_per_s=None if by_fixes else _rate_of(run, config),
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


def _from_fixes(run: RunRecord) -> tuple[Config, Interval, int] | None:
    """All accepted fixes together; if there was no time to compare them, the largest gain of a single fix."""
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


def _from_sweep(run: RunRecord) -> tuple[Config, Interval, int] | None:
    """The best configuration if its gain is significant, else the largest gain that is.

    The best can be a tie that costs less than the fastest, but has a noisy trial.
    """
    if run.best is None:
        return None
    others = _others(run)
    if run.best.config in others and _is_significant(run, run.best.config):
        found = [run.best.config]
    else:
        found = [config for config in others if _is_significant(run, config, among=len(others))]
    gains = [(config, gain, _rounds_in_common(run, config)) for config in found if (gain := _gain(run, config))]
    return max(gains, key=lambda one: one[1].est, default=None)


def _is_significant(run: RunRecord, config: Config, among: int = 1) -> bool:
    """Whether these arguments are faster than the current ones, in at least as many rounds as a winner needs.

    The level is stricter for the largest of several gains (Bonferroni), and after more rounds than planned, because the
    gain was judged before.
    """
    again = any(trial.round > run.plan.rounds for trial in run.sweep if trial.config == config)
    level = 1 - (1 - (LEVEL_OF_LOOKS if again else LEVEL)) / among
    gain = _gain(run, config, level)
    return gain is not None and is_above_one(gain) and _rounds_in_common(run, config) >= FEWEST_ROUNDS


def _gain(run: RunRecord, config: Config, level: float = LEVEL) -> Interval | None:
    """The rate of these arguments relative to the current ones, paired by round of the sweep and of the final."""
    return ratio_of(config, run.plan.baseline, [*run.sweep, *run.finals], level)


def _others(run: RunRecord) -> list[Config]:
    """All measured arguments but the current ones."""
    return [one.config for one in run.configurations if one.config != run.plan.baseline]


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


def undecided_pair(run: RunRecord) -> tuple[Config, ...]:
    """The current arguments and the fastest, if more rounds of both may show a gain; otherwise empty."""
    fastest = _fastest(run)
    if run.best is None or fastest is None or _from_sweep(run) is not None:
        return ()
    config, ratio = fastest
    return (run.plan.baseline, config) if ratio > 1 + PRACTICAL_TIE else ()


def _fastest(run: RunRecord) -> tuple[Config, float] | None:
    """The fastest arguments and their rate relative to the current ones; `None` if too little was measured."""
    gains = [(config, gain.est) for config in _others(run) if (gain := _gain(run, config))]
    return max(gains, key=lambda one: one[1], default=None)


def _rounds_in_common(run: RunRecord, config: Config) -> int:
    """In how many rounds of the sweep and the final both these and the current arguments were measured."""
    mine, present = (rates_by_round(one, [*run.sweep, *run.finals]) for one in (config, run.plan.baseline))
    return len(mine.keys() & present.keys())


def present_rate(run: RunRecord) -> float | None:
    """Samples/s of the current arguments in trials; `None` if no trial was completed."""
    return _rate_of(run, run.plan.baseline)


def _rate_of(run: RunRecord, config: Config) -> float | None:
    return next((_rate(one) for one in run.configurations if one.config == config), None)


def _rate(one: Configuration) -> float | None:
    return one.samples_per_s.est if one.samples_per_s else None


def _why_none(run: RunRecord) -> str:
    """Why nothing changes: no difference, a difference hidden by noise or too few rounds, or nothing measurable."""
    fastest = _fastest(run)
    if run.best is None or fastest is None:
        most = Counter(last_words(trial.failure.message) for trial in run.sweep if trial.failure).most_common(1)
        if not most:
            return f"{NO_DECISION}; use a longer budget"
        count = f"{most[0][1]} trial{'s' if most[0][1] > 1 else ''}"
        return f"{NO_DECISION}; {count} failed: {most[0][0]}"
    config, ratio = fastest
    if ratio <= 1 + PRACTICAL_TIE:
        return AS_FAST
    maybe, rounds = numbers.gain(ratio, None, None).main, _rounds_in_common(run, config)
    within = f"within the noise of {rounds} rounds; use a longer budget"
    return f"{arguments_in_words(config)} may be faster ({maybe}), but {within}"
