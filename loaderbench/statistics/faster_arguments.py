"""The arguments that a run over a script's loader says to use: by its fixes, or else by its sweep."""

from __future__ import annotations

from dataclasses import dataclass

from loaderbench.loaders.torch_loader import PREFETCH
from loaderbench.records import Config, Interval, RunRecord
from loaderbench.statistics.configurations import PRACTICAL_TIE, rates_by_round, ratio_of
from loaderbench.statistics.gates import LEVEL_OF_LOOKS
from loaderbench.statistics.intervals import FEWEST_ROUNDS, LEVEL, is_above_one

DEFAULTS: Config = {"prefetch_factor": PREFETCH, "persistent_workers": False}
"""torch's defaults with workers."""


@dataclass(frozen=True)
class FasterArguments:
    """A configuration that is faster than the current one, by the ratio `gain` over `pairs` pairs of trials.

    `by_fixes`: fixes are part of it, which were measured without the emulated step.
    """

    config: Config
    gain: Interval
    pairs: int
    by_fixes: bool

    def changes_of(self, present: Config) -> Config:
        """The arguments that differ from the current ones; those not given have torch's defaults."""
        now = {**DEFAULTS, **{axis: value for axis, value in present.items() if value is not None}}
        return {axis: value for axis, value in self.config.items() if value is not None and now.get(axis) != value}


def faster_arguments(run: RunRecord) -> FasterArguments | None:
    """The fixes on top of the sweep, else the sweep's fastest; `None` if the current arguments should stay."""
    return _from_fixes(run) or _from_sweep(run)


def _from_fixes(run: RunRecord) -> FasterArguments | None:
    """All accepted fixes together; if there was no time to compare them, the largest gain of a single fix."""
    found = run.verification
    if found is None:
        return None
    whole = found.whole
    if found.accepted and whole is not None and whole.answer != "undecided":
        if whole.answer != "gain" or whole.ratio is None:
            return None
        return FasterArguments(found.config, whole.ratio, whole.pairs, by_fixes=True)
    gains = [
        FasterArguments(tried.config, tried.judgement.ratio, tried.judgement.pairs, by_fixes=True)
        for tried in found.tried
        if tried.against == run.plan.baseline
        and tried.judgement is not None
        and tried.judgement.ratio is not None
        and tried.judgement.answer == "gain"
    ]
    return max(gains, key=lambda one: one.gain.est, default=None)


def _from_sweep(run: RunRecord) -> FasterArguments | None:
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
    gains = [
        FasterArguments(config, gain, rounds_in_common(run, config), by_fixes=False)
        for config in found
        if (gain := _gain(run, config))
    ]
    return max(gains, key=lambda one: one.gain.est, default=None)


def _is_significant(run: RunRecord, config: Config, among: int = 1) -> bool:
    """Whether these arguments are faster than the current ones, in at least as many rounds as a winner needs.

    The level is stricter for the largest of several gains (Bonferroni), and after more rounds than planned, because the
    gain was judged before.
    """
    again = any(trial.round > run.plan.rounds for trial in run.sweep if trial.config == config)
    level = 1 - (1 - (LEVEL_OF_LOOKS if again else LEVEL)) / among
    gain = _gain(run, config, level)
    return gain is not None and is_above_one(gain) and rounds_in_common(run, config) >= FEWEST_ROUNDS


def _gain(run: RunRecord, config: Config, level: float = LEVEL) -> Interval | None:
    """The rate of these arguments relative to the current ones, paired by round of the sweep and of the final."""
    return ratio_of(config, run.plan.baseline, [*run.sweep, *run.finals], level)


def _others(run: RunRecord) -> list[Config]:
    """All measured arguments but the current ones."""
    return [one.config for one in run.configurations if one.config != run.plan.baseline]


def undecided_pair(run: RunRecord) -> tuple[Config, ...]:
    """The current arguments and the fastest, if more rounds of both may show a gain; otherwise empty."""
    fastest = fastest_others(run)
    if run.best is None or fastest is None or _from_sweep(run) is not None:
        return ()
    config, ratio = fastest
    return (run.plan.baseline, config) if ratio > 1 + PRACTICAL_TIE else ()


def fastest_others(run: RunRecord) -> tuple[Config, float] | None:
    """The fastest arguments and their rate relative to the current ones; `None` if too little was measured."""
    gains = [(config, gain.est) for config in _others(run) if (gain := _gain(run, config))]
    return max(gains, key=lambda one: one[1], default=None)


def rounds_in_common(run: RunRecord, config: Config) -> int:
    """In how many rounds of the sweep and the final both these and the current arguments were measured."""
    mine, present = (rates_by_round(one, [*run.sweep, *run.finals]) for one in (config, run.plan.baseline))
    return len(mine.keys() & present.keys())
