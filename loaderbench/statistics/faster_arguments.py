"""The arguments that a run over a script's loader says to use: by its fixes, or else by its sweep."""

from __future__ import annotations

from dataclasses import replace

from loaderbench.loaders.torch_loader import PREFETCH
from loaderbench.loaders.worker_options import WORKER_OPTIONS
from loaderbench.records import Config, Interval, RunRecord, TunedArguments
from loaderbench.statistics.configurations import PRACTICAL_TIE, ratio_of, rounds_of_both
from loaderbench.statistics.gates import LEVEL_OF_LOOKS
from loaderbench.statistics.intervals import FEWEST_ROUNDS, LEVEL, at_another_time, is_above_one, sd_between_times
from loaderbench.statistics.open_fixes import open_fixes

DEFAULTS: Config = {"prefetch_factor": PREFETCH, "persistent_workers": False}
"""torch's defaults with workers."""

NOT_TUNED = "only tune chooses arguments for a script"
NONE_FASTER = "no other arguments are significantly faster"
NOT_DECIDED = "a longer budget may show that other arguments are faster"


def with_tuned(run: RunRecord) -> RunRecord:
    """The run with the arguments to use, or the reason why there are none."""
    found = faster_arguments(run) if run.is_of_script else None
    if found is not None:
        return replace(run, tuned=found)
    return replace(run, not_measured={**run.not_measured, "tuned": _why_none(run)})


def _why_none(run: RunRecord) -> str:
    if not run.is_of_script:
        return NOT_TUNED
    nothing_known = run.best is None or fastest_others(run) is None
    return NOT_DECIDED if nothing_known or undecided_pair(run) or open_fixes(run, run.plan.baseline) else NONE_FASTER


def faster_arguments(run: RunRecord) -> TunedArguments | None:
    """The fixes on top of the sweep, else the sweep's fastest; `None` if the current arguments should stay."""
    return _from_fixes(run) or _from_sweep(run)


def changed_arguments(present: Config, wanted: Config) -> Config:
    """The arguments of `wanted` that differ from the present ones; those not given have torch's defaults.

    Without workers, torch refuses `prefetch_factor` and `persistent_workers`: present values are reset.
    """
    now = {**DEFAULTS, **_without_none(present)}
    wanted = _without_none(wanted)
    if not wanted.get("num_workers", now.get("num_workers")):
        wanted = {name: value for name, value in wanted.items() if name not in DEFAULTS}
        if now.get("num_workers"):
            wanted |= {"prefetch_factor": None, "persistent_workers": False}
    return {name: value for name, value in wanted.items() if now.get(name) != value}


def _without_none(config: Config) -> Config:
    return {name: value for name, value in config.items() if value is not None}


def _tuned(run: RunRecord, config: Config, gain: Interval, pairs: int, *, by_fixes: bool) -> TunedArguments:
    change = changed_arguments(run.plan.baseline, config)
    return TunedArguments(
        change={name: value for name, value in change.items() if name not in WORKER_OPTIONS},
        worker_options={name: value for name, value in change.items() if name in WORKER_OPTIONS},
        config=config,
        gain=at_another_time(gain, pairs, sd_between_times(run.trials)),
        pairs=pairs,
        by_fixes=by_fixes,
    )


def _from_fixes(run: RunRecord) -> TunedArguments | None:
    """All accepted fixes together; if there was no time to compare them, the largest gain of a single fix."""
    found = run.verification
    if found is None:
        return None
    whole = found.whole
    if found.accepted and whole is not None and whole.answer != "undecided":
        if whole.answer != "gain" or whole.ratio is None:
            return None
        return _tuned(run, found.config, whole.ratio, whole.pairs, by_fixes=True)
    gains = [
        _tuned(run, tried.config, tried.judgement.ratio, tried.judgement.pairs, by_fixes=True)
        for tried in found.tried
        if tried.against == run.plan.baseline
        and tried.judgement is not None
        and tried.judgement.ratio is not None
        and tried.judgement.answer == "gain"
    ]
    return max(gains, key=lambda one: one.gain.est, default=None)


def _from_sweep(run: RunRecord) -> TunedArguments | None:
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
        _tuned(run, config, gain, rounds_in_common(run, config), by_fixes=False)
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
    return rounds_of_both(config, run.plan.baseline, [*run.sweep, *run.finals])
