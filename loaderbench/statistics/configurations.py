"""Summarizes trials by configuration: intervals over rounds, ranks, ties with the fastest, and finalists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from statistics import fmean

from loaderbench.ranks import RANKS
from loaderbench.records import Config, Configuration, Interval, Trial
from loaderbench.records.metrics import BY_ID, METRICS, Metric, OverRounds
from loaderbench.statistics.intervals import (
    FEWEST_ROUNDS,
    LEVEL,
    excludes_one,
    is_below_one,
    rate_interval,
    ratio_interval,
    share_interval,
)
from loaderbench.statistics.racing import estimates, is_tie

Round = tuple[str, bool, int]
"""The step, whether in time slices, and the number of a round; the sweep, its final and the fixes each count from 1."""

PRACTICAL_TIE = 0.05
"""A configuration whose estimate is slower by more than this is undecided, not a tie, however noisy the rounds."""


def summarize(
    configs: Sequence[Config],
    trials: Sequence[Trial],
    baseline: Config | None = None,
    finals: Sequence[Trial] = (),
    alike: Collection[str] = (RANKS,),
) -> tuple[Configuration, ...]:
    """One record per configuration, in the given order.

    Rank 1 has the highest estimate, in any number of rounds; to win or to tie takes `FEWEST_ROUNDS`. With a `baseline`,
    only configurations with its values of the axes `alike` are ranked, such as its number of processes. `finals`, the
    trials of the final, count only for ranks and ties.
    """
    found = [_configuration(config, [trial for trial in trials if trial.config == config]) for config in configs]
    ranked = [c for c in found if baseline is None or is_alternative(c.config, baseline, alike)]
    compared = [*trials, *finals]
    rates = {id(c): rates_by_round(c.config, compared) for c in ranked if c.samples_per_s}
    adjusted = estimates(rates)
    order = sorted((c for c in ranked if c.samples_per_s), key=lambda c: adjusted[id(c)], reverse=True)
    ranks = {id(configuration): rank for rank, configuration in enumerate(order, 1)}
    top = next((c for c in order if len(rates[id(c)]) >= FEWEST_ROUNDS), None)
    tied = {id(c) for c in ranked if top is not None and ties(c.config, top.config, compared)}
    return tuple(_ranked(c, ranks.get(id(c)), tied=id(c) in tied) for c in found)


def is_alternative(config: Config, baseline: Config, alike: Collection[str]) -> bool:
    """Whether a configuration does the same work as the baseline, by the axes that must be `alike`."""
    return all(config.get(axis) == baseline.get(axis) for axis in alike)


def _ranked(found: Configuration, rank: int | None, *, tied: bool) -> Configuration:
    """The configuration with its rank, or the reason for having none."""
    why = found.not_measured.get("samples_per_s", "only configs that do the same work as the baseline are ranked")
    reasons = found.not_measured if rank is not None else {**found.not_measured, "rank": why}
    return replace(found, rank=rank, tied_with_best=tied, not_measured=reasons)


def rates_by_round(config: Config, trials: Iterable[Trial]) -> dict[Round, float]:
    """Samples/s of the completed trials of a configuration, by round."""
    return rates_of(trial for trial in trials if trial.config == config)


def rates_of(trials: Iterable[Trial]) -> dict[Round, float]:
    """Samples/s of the completed trials, at most one per round; rounds in time slices are distinct, as rates differ."""
    rates = {_round(trial): rate_of(trial) for trial in trials}
    return {found: rate for found, rate in rates.items() if rate is not None}


def _round(trial: Trial) -> Round:
    step = trial.role if trial.role in ("final", "remedy") else "sweep"
    return step, trial.time_slices is not None, trial.round


def rate_of(trial: Trial) -> float | None:
    """Samples/s of a completed trial; `None` if no sample was delivered, because 0 has no logarithm."""
    rate = trial.samples_per_s
    return rate if trial.status == "completed" and rate is not None and rate > 0 else None


def ratio_of(changed: Config, unchanged: Config, trials: Sequence[Trial], level: float = LEVEL) -> Interval | None:
    """The ratio of two configurations' samples/s, paired by round."""
    return ratio_interval(rates_by_round(changed, trials), rates_by_round(unchanged, trials), level)


def rounds_of_both(changed: Config, unchanged: Config, trials: Sequence[Trial]) -> int:
    """How many rounds have completed trials of both configurations."""
    return len(rates_by_round(changed, trials).keys() & rates_by_round(unchanged, trials).keys())


def ties(config: Config, top: Config, trials: Sequence[Trial]) -> bool:
    """Whether a configuration is not significantly different from `top`, nor slower by more than `PRACTICAL_TIE`.

    If both met in a final, a slower one also ties, unless it was slower in every round; otherwise, noise alone would
    choose between them.
    """
    own, its = rates_by_round(config, trials), rates_by_round(top, trials)
    rounds, ratio = own.keys() & its.keys(), ratio_of(config, top, trials)
    if ratio is None or len(rounds) < FEWEST_ROUNDS or excludes_one(ratio):
        return False
    met = any(step == "final" for step, _, _ in rounds)
    return ratio.est >= 1 - PRACTICAL_TIE or (met and any(own[at] >= its[at] for at in rounds))


def _configuration(config: Config, trials: Sequence[Trial]) -> Configuration:
    completed = [trial for trial in trials if trial.status == "completed"]
    found = {metric: _over_rounds(metric, completed) for metric in METRICS if metric.over_rounds}
    fields = {metric.id: value for metric, value in found.items() if metric.has_field}
    return Configuration(
        config=config,
        trials=tuple(trial.id for trial in trials),
        rank=None,
        tied_with_best=False,
        metrics={m.id: value for m, value in found.items() if not m.has_field and isinstance(value, int | float)},
        not_measured=_reasons([name for name, value in fields.items() if value is None], trials, completed),
        **fields,  # type: ignore[arg-type]
    )


def _over_rounds(metric: Metric, completed: Sequence[Trial]) -> Interval | float | None:
    """One value of a metric over all trials of a configuration; `None` if no trial has one."""
    values = [value for trial in completed if (value := metric.of_round(trial)) is not None]
    if metric.over_rounds == "rate":  # only positive values have a logarithm
        values = [value for value in values if value > 0]
    return _AGGREGATES[metric.over_rounds or "mean"](values) if values else None


_AGGREGATES: dict[OverRounds, Callable[[Sequence[float]], Interval | float]] = {
    "rate": rate_interval,
    "share": share_interval,
    "mean": fmean,
    "largest": max,
}


def _reasons(missing: Sequence[str], trials: Sequence[Trial], completed: Sequence[Trial]) -> dict[str, str]:
    """Why a configuration lacks these metrics."""
    if not completed:
        return dict.fromkeys(missing, "every trial failed" if trials else "not run")
    reasons = dict.fromkeys(missing, "no trial could read it")
    if "samples_per_s" in reasons:
        of_trials = (trial.not_measured.get("samples_per_s") for trial in completed)
        reasons["samples_per_s"] = next(filter(None, of_trials), "no sample was delivered")
    if not any(trial.gpus for trial in completed):
        why = "no GPU was seen" if completed[0].is_from_outside else "no GPU was used"
        reasons |= dict.fromkeys((name for name in missing if BY_ID[name].gpu), why)
    return reasons


FINAL_TIE = 0.03
"""A finalist whose entire interval is within this share of the best needs no more rounds."""


def finalists(configs: Sequence[Config], trials: Sequence[Trial], level: float = LEVEL) -> list[Config]:
    """Configurations not excluded as best at this level, fastest first; empty if none has enough rounds."""
    rates = {number: rates_by_round(config, trials) for number, config in enumerate(configs)}
    ahead = estimates({number: found for number, found in rates.items() if len(found) >= FEWEST_ROUNDS})
    order = [configs[number] for number in sorted(ahead, key=lambda number: -ahead[number])]
    return [one for one in order if one is order[0] or not is_below_one(ratio_of(one, order[0], trials, level))]


def is_settled(found: Sequence[Config], trials: Sequence[Trial]) -> bool:
    """Whether the first finalist is tied with all others, or is the only one left."""
    ratios = (ratio_of(config, found[0], trials) for config in found[1:])
    return all(ratio is not None and is_tie(ratio, FINAL_TIE) for ratio in ratios)
