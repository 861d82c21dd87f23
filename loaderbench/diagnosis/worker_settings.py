"""More workers, fewer workers, or one library thread per worker: which to measure, their gains, and conclusions.

A limit names what has to change. If the sweep has no other worker count, additional trials show whether one helps.
Fewer workers on the same CPUs give each of them more CPU time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loaderbench.diagnosis.bottlenecks import NOT_SIGNIFICANT
from loaderbench.diagnosis.cpu_use import fewer_workers
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.failures import failure_in_words
from loaderbench.diagnosis.limits import have_library_threads
from loaderbench.diagnosis.thresholds import MOST, NOTICED
from loaderbench.loaders import backend_of, worker_count
from loaderbench.loaders.torch_loader import MAX_WORKERS
from loaderbench.records import (
    Config,
    Evidence,
    Interval,
    Reasons,
    Trial,
    WorkerSetting,
    WorkerSettingName,
    config_label,
)
from loaderbench.statistics.configurations import rates_of, ratio_of
from loaderbench.statistics.intervals import (
    excludes_one,
    is_above_one,
    is_below_one,
    percent_gain,
    rate_interval,
    ratio_interval,
)
from loaderbench.statistics.judging import SMALL, WORTH_IT

KEY = "worker_settings."
ONE_THREAD: Config = {"worker_threads": 1}


def settings_to_measure(
    config: Config, loader: Mapping[str, Any], facts: Facts, sweep: Sequence[Trial]
) -> tuple[Config, ...]:
    """Configurations to compare with this one: worker counts missing from the sweep, and one library thread per worker.

    Empty for a loader other than torch's, whose trials cannot be compared with free-stage trials.
    """
    arguments = {**loader, **config}
    workers = worker_count(config, loader)
    if workers is None or backend_of(arguments) is not backend_of({}):
        return ()
    counts = []
    if not _is_measured(config, loader, sweep, lambda count: count > workers, or_failed=True):
        counts.append(max(2, workers + max(1, workers // 4)))
    fewer = max(1, fewer_workers(facts))
    if workers > 1 and not _is_measured(config, loader, sweep, lambda count: fewer <= count < workers):
        counts.append(fewer)
    changes: list[Config] = [{"num_workers": count} for count in counts if count <= MAX_WORKERS]
    if workers and arguments.get("worker_threads") is None and have_library_threads(facts):
        changes.append(ONE_THREAD)
    return tuple({**config, **change} for change in changes)


def _is_measured(
    config: Config,
    loader: Mapping[str, Any],
    sweep: Sequence[Trial],
    counts: Callable[[int], bool],
    *,
    or_failed: bool = False,
) -> bool:
    """Whether the sweep has a ratio with an interval for such a worker count; `or_failed`: or a failed trial."""
    others = [one for one in alike(config, loader, sweep) if counts(worker_count(one, loader) or 0)]
    failed = or_failed and any(trial.status != "completed" and trial.config in others for trial in sweep)
    ratios = [ratio_of(one, config, sweep) for one in others]
    return failed or any(ratio is not None and ratio.lo is not None for ratio in ratios)


def alike(config: Config, loader: Mapping[str, Any], trials: Iterable[Trial]) -> list[Config]:
    """The other configurations that differ from this one only in arguments about workers."""
    others = {tuple(trial.config.items()): trial.config for trial in trials}.values()
    rest = _without_worker_axes(config, loader)
    return [other for other in others if other != config and _without_worker_axes(other, loader) == rest]


def _without_worker_axes(config: Config, loader: Mapping[str, Any]) -> dict[str, Any]:
    arguments = {**loader, **config}
    return {axis: value for axis, value in arguments.items() if axis not in backend_of(arguments).worker_axes}


def describe_worker_settings(
    trials: Sequence[Trial], config: Config, loader: Mapping[str, Any], left_out: Reasons
) -> tuple[tuple[WorkerSetting, ...], Reasons]:
    """The gain of each configuration that changes one argument of this one, and why others are missing.

    Gains are paired by the rounds of free-stage trials that have both.
    """
    whole = [trial for trial in trials if trial.freed is None]
    unchanged = rates_of(trial for trial in whole if trial.config == config)
    changes = {tuple(change.items()): change for trial in whole if len(change := change_of(trial.config, config)) == 1}
    found, reasons = [], {key: why for key, why in left_out.items() if key.startswith(KEY)}
    for change in changes.values() if unchanged else ():
        changed = [trial for trial in whole if trial.config == {**config, **change}]
        rates = rates_of(changed)
        gain = ratio_interval(rates, unchanged)
        if gain is None:
            reasons[KEY + config_label(change)] = _why_not(changed)
            continue
        paired = rate_interval([rate for number, rate in rates.items() if number in unchanged])
        ids = tuple(trial.id for trial in changed)
        name = _name(change, config, loader)
        found.append(WorkerSetting(name=name, change=change, samples_per_s=paired, gain=gain, trials=ids))
    return tuple(sorted(found, key=lambda one: one.name)), reasons


def change_of(other: Config, config: Config) -> Config:
    """The arguments of the other configuration that differ; empty if it lacks one of this one's."""
    if not config.keys() <= other.keys():
        return {}
    return {axis: value for axis, value in other.items() if axis not in config or config[axis] != value}


def _why_not(trials: Sequence[Trial]) -> str:
    failure = next((trial.failure for trial in trials if trial.failure), None)
    return failure_in_words(failure) if failure else "never measured in the same round as the unmodified loader"


def _name(change: Config, config: Config, loader: Mapping[str, Any]) -> WorkerSettingName:
    before, after = worker_count(config, loader) or 0, worker_count({**config, **change}, loader) or 0
    return "one_library_thread" if after == before else "more_workers" if after > before else "fewer_workers"


def noticeable_gain(workers: int, more: int) -> float:
    """The smallest ratio that shows that workers were missing: each added one gains half as much as a present one."""
    now = max(1, workers)
    return 1 + MOST * (more - now) / now


def worker_settings_in_words(found: Sequence[WorkerSetting]) -> tuple[Evidence, ...]:
    """One line: `num_workers=1: -42% (-45 to -39%); num_workers=3: not significant`; omits settings of one round."""
    settings = [f"{config_label(one.change)}: {setting_in_words(one)}" for one in found if one.gain.lo is not None]
    return (Evidence("free", "Other worker settings", "; ".join(settings)),) if settings else ()


def setting_in_words(one: WorkerSetting) -> str:
    """The setting's gain or loss in percent, or `not significant`."""
    significant = one.gain.lo is None or excludes_one(one.gain)
    return percent_gain(one.gain) if significant else NOT_SIGNIFICANT


@dataclass(frozen=True, kw_only=True)
class OtherWorkers:
    """Another worker count than `now`, or the same `workers` with one library thread each, and its gain."""

    now: int
    workers: int
    gain: Interval

    @property
    def is_slower(self) -> bool:
        """Whether the setting is significantly slower."""
        return is_below_one(self.gain)

    @property
    def is_less_and_faster(self) -> bool:
        """Whether fewer workers, or threads, have a noticeable gain."""
        return self.workers <= self.now and is_above_one(self.gain) and self.gain.est >= 1 + NOTICED

    @property
    def is_less_and_no_faster(self) -> bool:
        """Whether fewer workers, or threads, gain less than `NOTICED`, or less than `SMALL` if not significant."""
        return self.workers <= self.now and self._is_at_most(1 + NOTICED)

    @property
    def is_more_and_faster(self) -> bool:
        """Whether each added worker gains at least half as much as a present one."""
        return self._is_more and is_above_one(self.gain) and self.gain.est >= noticeable_gain(self.now, self.workers)

    @property
    def is_more_and_no_faster(self) -> bool:
        """Whether more workers certainly gain less than `is_more_and_faster` needs, and too little to be worth it."""
        enough = noticeable_gain(self.now, self.workers)
        return self._is_more and self._is_at_most(min(enough, WORTH_IT), min(enough, SMALL))

    @property
    def is_decided(self) -> bool:
        """Whether another round would not change the answer."""
        no_faster = self.is_more_and_no_faster if self._is_more else self.is_less_and_no_faster
        return is_above_one(self.gain) or self.is_slower or no_faster

    @property
    def _is_more(self) -> bool:
        """Whether there are more workers; a single worker only replaces the main process."""
        return self.workers > max(1, self.now)

    def _is_at_most(self, sure: float, unsure: float = SMALL) -> bool:
        """Whether the upper end of the gain is at most `sure` if the gain is significant, or `unsure` if it is not."""
        hi = self.gain.hi
        return hi is not None and hi <= (sure if is_above_one(self.gain) else unsure)


def with_other_counts(
    facts: Facts,
    config: Config,
    loader: Mapping[str, Any],
    trials: Sequence[Trial],
    settings: Sequence[WorkerSetting] = (),
) -> Facts:
    """The facts with the gains of other worker counts: from `trials`, paired by round, and from `settings`."""
    now = worker_count(config, loader) or 0
    measured = [of_setting(one, config, loader) for one in settings]
    found = [*_measured_counts(trials, config, loader), *measured]
    one_thread = [one for one in found if one.workers == now]
    counts = [one for one in found if one.workers != now]
    parallel = [one for one in counts if one.workers > 0]
    fewer = [one for one in parallel if one.workers < now]
    return replace(
        facts,
        fewer_are_no_faster=any(one.is_less_and_no_faster for one in fewer if one.workers >= fewer_workers(facts)),
        fewer_are_faster=any(one.is_less_and_faster for one in fewer),
        one_thread_is_no_faster=any(one.is_less_and_no_faster for one in one_thread),
        one_thread_is_faster=any(one.is_less_and_faster for one in one_thread),
        workers_are_slower=now == 0 and bool(parallel) and all(one.is_slower for one in parallel),
        more_are_no_faster=any(one.is_more_and_no_faster for one in counts),
        more_are_faster=any(one.is_more_and_faster for one in counts),
    )


def of_setting(one: WorkerSetting, config: Config, loader: Mapping[str, Any]) -> OtherWorkers:
    """A measured setting, compared with the configuration."""
    return _other({**config, **one.change}, config, loader, one.gain)


def _measured_counts(trials: Sequence[Trial], config: Config, loader: Mapping[str, Any]) -> Iterator[OtherWorkers]:
    """Measured configurations with another worker count, or with the same count and one library thread per worker."""
    others = alike(config, loader, trials)
    counts = [other for other in others if worker_count(other, loader) != worker_count(config, loader)]
    one_thread = {**config, **ONE_THREAD}
    for other in (*counts, *([] if one_thread == config else [one_thread])):
        gain = ratio_of(other, config, trials)
        if gain is not None:
            yield _other(other, config, loader, gain)


def _other(other: Config, config: Config, loader: Mapping[str, Any], gain: Interval) -> OtherWorkers:
    now, workers = (worker_count(one, loader) or 0 for one in (config, other))
    return OtherWorkers(now=now, workers=workers, gain=gain)
