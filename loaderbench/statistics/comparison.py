"""Compares two runs in the configurations that both measured.

The unit is the process. Two runs share no rounds, so nothing can be paired. A machine is not equally quiet on two days,
so the two variances are not pooled. Source: Welch, The Generalization of 'Student's' Problem when Several Different
Population Variances are Involved, Biometrika 1947.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from loaderbench.consumers import NO_CONSUMER, consumer_kind
from loaderbench.records import (
    Comparison,
    Config,
    FailedTrials,
    Interval,
    MetricChange,
    Outcome,
    Reasons,
    RunRecord,
    Trial,
    config_label,
    config_name,
    varying,
)
from loaderbench.statistics.configurations import rate_of
from loaderbench.statistics.failed_trials import failed_trials, failures_in_words, was_tried
from loaderbench.statistics.intervals import (
    FEWEST_PROCESSES,
    LEVEL,
    interval_of_log,
    rate_interval,
    share_interval,
    times,
    welch_interval,
)
from loaderbench.statistics.run_differences import differences, doubts
from loaderbench.statistics.target_rate import CAPPED, is_hidden

SAME_RATE = 0.05
SAME_SHARE = 0.02
"""A change that is not significant is noise if its interval lies within these limits, and inconclusive otherwise.

The limits are a share of samples/s and a share of time. A significant change is never noise, however small.
"""


@dataclass(frozen=True, kw_only=True)
class ComparedMetric:
    """How a metric is compared: its estimator, the value that means no change, and the distance that is noise."""

    name: str
    interval: Callable[[Sequence[float], float], Interval]
    unchanged: float
    noise: float
    more_is_better: bool


RATE = ComparedMetric(name="samples_per_s", interval=rate_interval, unchanged=1.0, noise=SAME_RATE, more_is_better=True)
DATA_WAIT = ComparedMetric(
    name="data_wait_share", interval=share_interval, unchanged=0.0, noise=SAME_SHARE, more_is_better=False
)

Missing = Callable[[Sequence[float], Sequence[float]], Reasons]
"""Gives the reasons for missing values, from the values of both runs."""

AFTER_FAILED = "every trial of the later run failed"
ONE_PROCESS = "only one process in a run, so the spread between processes is unknown; measure more rounds"
_WIDE = "the interval includes both no change and a change that matters; more rounds in both runs narrow it"


def compare_runs(before: RunRecord, after: RunRecord, level: float = LEVEL) -> Comparison:
    """Compare two runs of the same machine, versions, data and consumer, or say what differs.

    If several configurations are shared, the best was chosen by the rates of `after`, which favors it slightly. If the
    best of `before` only fails in `after`, the outcome is about that one. All intervals have this `level`.
    """
    shared = _shared(before, after)
    different = [*differences(before, after), *([] if shared else [_nothing_shared(before, after)])]
    if different:
        return Comparison(
            outcome="incomparable", headline=cannot_compare(different), metrics=(), reasons=tuple(different)
        )
    changes = tuple(change for config in shared for change in _changes(config, before, after, level))
    chosen = _headline_change(changes, before, after)
    failed = _failed(shared, before, after, level)
    partly = [failures_in_words(one) for one in failed if one.config == chosen.config]
    reasons = [*_reasons(chosen, after), *filter(None, partly), *doubts(before, after)]
    headline = headline_of(chosen, varying(chosen.config, after.plan.axes) if len(shared) > 1 else {})
    return Comparison(
        outcome=chosen.outcome,
        headline=headline,
        metrics=changes,
        reasons=tuple(reasons),
        config=chosen.config,
        failed_trials=failed,
    )


def _nothing_shared(before: RunRecord, after: RunRecord) -> str:
    then, now = (_count_or_name(_configs(run)) for run in (before, after))
    return f"no config was measured in both runs: {then} before, {now} after"


def _count_or_name(configs: Sequence[Config]) -> str:
    if len(configs) != 1:
        return f"{len(configs)} configs"
    return config_name(configs[0])


def cannot_compare(different: Sequence[str]) -> str:
    """Say that two runs are not comparable, with the first of the `different` properties."""
    count = f" ({len(different)} differences)" if len(different) > 1 else ""
    return f"Runs are not comparable{count}. {different[0][0].upper()}{different[0][1:]}"


def _configs(run: RunRecord) -> list[Config]:
    """Every configuration with a trial, completed or not, once."""
    found: list[Config] = []
    for trial in run.sweep:
        if trial.config not in found:
            found.append(trial.config)
    return found


def _shared(before: RunRecord, after: RunRecord) -> list[Config]:
    known = _configs(before)
    return [config for config in _configs(after) if config in known]


def _failed(configs: Sequence[Config], before: RunRecord, after: RunRecord, level: float) -> tuple[FailedTrials, ...]:
    """The failed trials of each configuration that has any."""
    each = (failed_trials(config, _trials(config, before), _trials(config, after), level) for config in configs)
    return tuple(found for found in each if found is not None)


def _trials(config: Config, run: RunRecord) -> list[Trial]:
    return [trial for trial in run.sweep if trial.config == config]


def _changes(config: Config, before: RunRecord, after: RunRecord, level: float) -> tuple[MetricChange, MetricChange]:
    then, now = ([trial for trial in _trials(config, run) if trial.status == "completed"] for run in (before, after))
    failed = not now and any(map(was_tried, _trials(config, after)))
    missing = partial(_missing, why_after=AFTER_FAILED if failed else "not measured after")
    rate = _rate_change(config, _rates(then), _rates(now), level, missing)
    if not consumer_kind(after.consumer).consumes:
        no_wait = dict.fromkeys(("before", "after", "change"), NO_CONSUMER)
        return rate, change_of(DATA_WAIT, config, [], [], None, not_measured=no_wait)
    return rate, _share_change(config, _shares(then), _shares(now), level, missing)


def _rates(trials: Sequence[Trial]) -> list[float]:
    return [rate for trial in trials if (rate := rate_of(trial)) is not None]


def _shares(trials: Sequence[Trial]) -> list[float]:
    return [trial.data_wait_share for trial in trials if trial.data_wait_share is not None]


def _rate_change(
    config: Config, before: Sequence[float], after: Sequence[float], level: float, missing: Missing
) -> MetricChange:
    """The ratio of rates, on logarithms because machines slow down by factors."""
    change = None
    if before and after:
        logs = welch_interval([math.log(rate) for rate in before], [math.log(rate) for rate in after], level)
        no_bounds = Interval(math.exp(logs.est), None, None)
        change = no_bounds if logs.hi is None else interval_of_log(logs.est, logs.hi - logs.est)
    return change_of(RATE, config, before, after, change, not_measured=missing(before, after), level=level)


def _share_change(
    config: Config, before: Sequence[float], after: Sequence[float], level: float, missing: Missing
) -> MetricChange:
    change = within_one(welch_interval(before, after, level)) if before and after else None
    return change_of(DATA_WAIT, config, before, after, change, not_measured=missing(before, after), level=level)


def change_of(
    metric: ComparedMetric,
    config: Config,
    before: Sequence[float],
    after: Sequence[float],
    change: Interval | None,
    *,
    not_measured: Reasons,
    level: float = LEVEL,
) -> MetricChange:
    """The record of a change; `level` is that of the intervals before and after."""
    return MetricChange(
        config=config,
        metric=metric.name,
        before=metric.interval(before, level) if before else None,
        after=metric.interval(after, level) if after else None,
        change=change,
        outcome=_outcome(change, metric.unchanged, metric.noise, more_is_better=metric.more_is_better),
        not_measured=not_measured,
    )


def within_one(difference: Interval) -> Interval:
    """The difference of two shares, with its interval clipped to -1 and 1."""
    if difference.lo is None or difference.hi is None:
        return difference
    return Interval(difference.est, max(-1.0, difference.lo), min(1.0, difference.hi))


def _outcome(change: Interval | None, none: float, same: float, *, more_is_better: bool) -> Outcome:
    """Judge an interval by the value that means no change, and the distance from it that counts as noise."""
    if change is None or change.lo is None or change.hi is None:
        return "inconclusive"
    if not change.lo <= none <= change.hi:
        return "improved" if (change.est > none) == more_is_better else "regressed"
    return "within noise" if none - same <= change.lo and change.hi <= none + same else "inconclusive"


def _missing(before: Sequence[float], after: Sequence[float], why_after: str) -> Reasons:
    if not before:
        either = {"before": "not measured before", "change": "not measured before"}
        return either if after else {**either, "after": why_after, "change": "not measured before or after"}
    if not after:
        return {"after": why_after, "change": why_after}
    return {"change": ONE_PROCESS} if min(len(before), len(after)) < FEWEST_PROCESSES else {}


def _headline_change(changes: Sequence[MetricChange], before: RunRecord, after: RunRecord) -> MetricChange:
    """The change in samples/s of the best configuration that both runs measured, by the rates of `after`.

    If the best configuration of `before` only fails in `after`, it is that one. So it is if it regressed and none in
    `after` is as fast as it was.
    """
    rates = [change for change in changes if change.metric == "samples_per_s"]
    reference = _best_of(before, rates, lambda change: change.before)
    if fails_only_after(reference):
        return reference
    both = [change for change in rates if change.change is not None]
    latest = _best_of(after, both or rates, lambda change: change.after)
    is_lost = reference.outcome == "regressed" and _rate(latest.after) < _rate(reference.before)
    return reference if is_lost else latest


def _rate(found: Interval | None) -> float:
    return found.est if found else 0.0


def _best_of(
    run: RunRecord, rates: Sequence[MetricChange], side: Callable[[MetricChange], Interval | None]
) -> MetricChange:
    """The change of the run's best configuration, or else of the fastest one in that run."""
    named = next((change for change in rates if run.best is not None and change.config == run.best.config), None)
    return named or max(rates, key=lambda change: _rate(side(change)))


def fails_only_after(change: MetricChange) -> bool:
    """Whether the earlier run measured this, and every trial of the later one failed."""
    return change.before is not None and change.not_measured.get("after") == AFTER_FAILED


def _reasons(change: MetricChange, after: RunRecord) -> list[str]:
    if is_hidden(change, after):
        return [CAPPED]
    if change.not_measured:
        return [change.not_measured["change"]]
    return [_WIDE] if change.outcome == "inconclusive" else []


def headline_of(change: MetricChange, config: Config) -> str:
    """The change in a sentence; `config` distinguishes its configuration from others, empty if there is only one."""
    where = f" with {config_label(config)}" if config else ""
    if change.change is None:
        return f"Samples/s: change{where} unknown, {change.not_measured['change']}"
    return f"Samples/s: {change.outcome}, {times(change.change)}{where}"
