"""More workers, fewer workers, or one library thread in each: which to measure, what they gave, and what that says.

A limit names what has to change. Where the sweep has no other worker count, trials of their own show whether that
helps. Fewer workers on the same CPUs give each of them more CPU time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loaderbench.diagnosis.bottlenecks import NOT_SIGNIFICANT
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.failures import failure_in_words
from loaderbench.diagnosis.limits import fewer_workers, have_library_threads
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
from loaderbench.statistics.intervals import excludes_one, is_above_one, is_below_one, rate_interval, ratio_interval
from loaderbench.statistics.judging import SMALL, WORTH_IT
from loaderbench.statistics.ratios import percent_gain

KEY = "worker_settings."
ONE_THREAD: Config = {"worker_threads": 1}


def settings_to_measure(
    config: Config, loader: Mapping[str, Any], facts: Facts, sweep: Sequence[Trial]
) -> tuple[Config, ...]:
    """Configurations to compare with this one: worker counts that the sweep lacks, and one library thread in each.

    None for a loader other than torch's: only trials of that one can be compared with those of free stages.
    """
    arguments = {**loader, **config}
    workers = worker_count(config, loader)
    if workers is None or backend_of(arguments) is not backend_of({}):
        return ()
    counts = []
    if not _is_known(config, loader, sweep, lambda count: count > workers, or_failed=True):
        counts.append(max(2, workers + max(1, workers // 4)))
    fewer = max(1, fewer_workers(facts))
    if workers > 1 and not _is_known(config, loader, sweep, lambda count: fewer <= count < workers):
        counts.append(fewer)
    changes: list[Config] = [{"num_workers": count} for count in counts if count <= MAX_WORKERS]
    if workers and arguments.get("worker_threads") is None and have_library_threads(facts):
        changes.append(ONE_THREAD)
    return tuple({**config, **change} for change in changes)


def _is_known(
    config: Config,
    loader: Mapping[str, Any],
    sweep: Sequence[Trial],
    counts: Callable[[int], bool],
    *,
    or_failed: bool = False,
) -> bool:
    """Whether the sweep has a ratio, with its interval, of such a worker count; `or_failed`, or a trial that failed."""
    others = [one for one in alike(config, loader, sweep) if counts(worker_count(one, loader) or 0)]
    failed = or_failed and any(trial.status != "completed" and trial.config in others for trial in sweep)
    ratios = [ratio_of(one, config, sweep) for one in others]
    return failed or any(ratio is not None and ratio.lo is not None for ratio in ratios)


def alike(config: Config, loader: Mapping[str, Any], trials: Iterable[Trial]) -> list[Config]:
    """The other configurations that differ from this one at most in arguments about workers."""
    others = {tuple(trial.config.items()): trial.config for trial in trials}.values()
    rest = _but_workers(config, loader)
    return [other for other in others if other != config and _but_workers(other, loader) == rest]


def _but_workers(config: Config, loader: Mapping[str, Any]) -> dict[str, Any]:
    arguments = {**loader, **config}
    return {axis: value for axis, value in arguments.items() if axis not in backend_of(arguments).worker_axes}


def describe_worker_settings(
    trials: Sequence[Trial], config: Config, loader: Mapping[str, Any], left_out: Reasons
) -> tuple[tuple[WorkerSetting, ...], Reasons]:
    """What each configuration with one other argument gained over this one, and why others are missing.

    By the rounds of free-stage trials that hold both.
    """
    whole = [trial for trial in trials if trial.freed is None]
    unchanged = rates_of(trial for trial in whole if trial.config == config)
    changes = {tuple(change.items()): change for trial in whole if len(change := change_of(trial.config, config)) == 1}
    found, reasons = [], {key: why for key, why in left_out.items() if key.startswith(KEY)}
    for change in changes.values() if unchanged else ():
        of_it = [trial for trial in whole if trial.config == {**config, **change}]
        rates = rates_of(of_it)
        gain = ratio_interval(rates, unchanged)
        if gain is None:
            reasons[KEY + config_label(change)] = _why_not(of_it)
            continue
        paired = rate_interval([rate for number, rate in rates.items() if number in unchanged])
        ids = tuple(trial.id for trial in of_it)
        name = _name(change, config, loader)
        found.append(WorkerSetting(name=name, change=change, samples_per_s=paired, gain=gain, trials=ids))
    return tuple(sorted(found, key=lambda one: one.name)), reasons


def change_of(other: Config, config: Config) -> Config:
    """The arguments of the other configuration that differ; none if it lacks one that this one has."""
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
    """The smallest ratio that shows workers were missing: each added one gives half as much as a present one."""
    now = max(1, workers)
    return 1 + MOST * (more - now) / now


def worker_settings_in_words(found: Sequence[WorkerSetting]) -> tuple[Evidence, ...]:
    """One line: `num_workers=1: -42% (-45 to -39%); num_workers=3: not significant`; no setting of one round."""
    said = [f"{config_label(one.change)}: {setting_in_words(one)}" for one in found if one.gain.lo is not None]
    return (Evidence("free", "Other worker settings", "; ".join(said)),) if said else ()


def setting_in_words(one: WorkerSetting) -> str:
    """Its gain or loss in percent, or `not significant`."""
    significant = one.gain.lo is None or excludes_one(one.gain)
    return percent_gain(one.gain) if significant else NOT_SIGNIFICANT


@dataclass(frozen=True, kw_only=True)
class OtherWorkers:
    """Another worker count than `now`, or the same `workers` with one library thread in each, and its gain."""

    now: int
    workers: int
    gain: Interval

    @property
    def is_slower(self) -> bool:
        """Whether it is certainly slower."""
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
        """Whether more workers add half of what the present ones give."""
        return self._is_more and is_above_one(self.gain) and self.gain.est >= noticeable_gain(self.now, self.workers)

    @property
    def is_more_and_no_faster(self) -> bool:
        """Whether more workers certainly add less than that, and either nothing or too little to be worth it."""
        enough = noticeable_gain(self.now, self.workers)
        return self._is_more and self._is_at_most(min(enough, WORTH_IT), min(enough, SMALL))

    @property
    def is_decided(self) -> bool:
        """Whether another round would not change the answer."""
        no_faster = self.is_more_and_no_faster if self._is_more else self.is_less_and_no_faster
        return is_above_one(self.gain) or self.is_slower or no_faster

    @property
    def _is_more(self) -> bool:
        """A single worker only replaces the main process."""
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
    """The facts, with what more or fewer workers gained in `trials`, paired by round, and in `settings`."""
    now = worker_count(config, loader) or 0
    measured = [of_setting(one, config, loader) for one in settings]
    found = [*_tried(trials, config, loader), *measured]
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


def _tried(trials: Sequence[Trial], config: Config, loader: Mapping[str, Any]) -> Iterator[OtherWorkers]:
    """Measured configurations with another worker count, or with one library thread in each of as many workers."""
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
