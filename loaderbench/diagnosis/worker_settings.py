"""What one more worker, fewer workers, or one library thread in each would give: which to measure, and what they gave.

A limit names what has to change. Where the sweep has no other worker count, trials of their own show whether that
helps. Fewer workers on the same CPUs give each of them more CPU time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loaderbench.diagnosis.bottlenecks import NOT_SIGNIFICANT
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import have_library_threads
from loaderbench.loaders import backend_of, worker_count
from loaderbench.records import Config, Evidence, Trial, WorkerSetting, WorkerSettingName, config_label
from loaderbench.statistics.configurations import rates_of
from loaderbench.statistics.intervals import excludes_one, rate_interval, ratio_interval
from loaderbench.statistics.ratios import percent_gain

ONE_THREAD: Config = {"worker_threads": 1}


def but_workers(config: Config) -> Config:
    """All of a configuration but how many load at the same time."""
    return {axis: value for axis, value in config.items() if axis not in backend_of(config).worker_axes}


def settings_to_measure(
    config: Config, loader: Mapping[str, Any], facts: Facts, sweep: Sequence[Trial]
) -> tuple[Config, ...]:
    """Configurations to compare with this one: a worker count that the sweep lacks, or one library thread each."""
    arguments = {**loader, **config}
    workers = worker_count(config, loader)
    if workers is None:
        return ()
    alike = (trial.config for trial in sweep if but_workers(trial.config) == but_workers(config))
    known = {worker_count(other, loader) or 0 for other in alike}
    counts = [] if any(count > workers for count in known) else [max(2, workers + 1)]
    if workers > 1 and not any(0 < count < workers for count in known):
        counts.append(min(workers - 1, max(1, int(facts.cpus))))
    changes = [backend_of(arguments).loading_in(count, arguments) for count in counts]
    if workers and "worker_threads" not in arguments and have_library_threads(facts):
        changes.append(ONE_THREAD)
    return tuple({**config, **change} for change in changes)


def describe_worker_settings(
    trials: Sequence[Trial], config: Config, loader: Mapping[str, Any]
) -> tuple[WorkerSetting, ...]:
    """What each changed configuration gained over this one, by the rounds of free-stage trials that hold both."""
    whole = [trial for trial in trials if trial.freed is None]
    unchanged = rates_of(trial for trial in whole if trial.config == config)
    others = {tuple(trial.config.items()): trial.config for trial in whole if trial.config != config}
    found = (_setting(other, config, loader, whole, unchanged) for other in others.values())
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.name))


def _setting(
    other: Config, config: Config, loader: Mapping[str, Any], trials: Sequence[Trial], unchanged: Mapping[Any, float]
) -> WorkerSetting | None:
    of_it = [trial for trial in trials if trial.config == other]
    rates = rates_of(of_it)
    gain = ratio_interval(rates, unchanged)
    if gain is None:
        return None
    return WorkerSetting(
        name=_name(other, config, loader),
        change={axis: value for axis, value in other.items() if config.get(axis) != value},
        samples_per_s=rate_interval([rate for found, rate in rates.items() if found in unchanged]),
        gain=gain,
        trials=tuple(trial.id for trial in of_it),
    )


def _name(other: Config, config: Config, loader: Mapping[str, Any]) -> WorkerSettingName:
    before, after = worker_count(config, loader) or 0, worker_count(other, loader) or 0
    return "one_library_thread" if after == before else "more_workers" if after > before else "fewer_workers"


def worker_settings_in_words(found: Sequence[WorkerSetting]) -> tuple[Evidence, ...]:
    """One line: `num_workers=1: -42% (-45 to -39%); num_workers=3: not significant`; no setting of one round."""
    said = [f"{config_label(one.change)}: {setting_in_words(one)}" for one in found if one.gain.lo is not None]
    return (Evidence("free", "Other worker settings", "; ".join(said)),) if said else ()


def setting_in_words(one: WorkerSetting) -> str:
    """Its gain or loss in percent, or `not significant`."""
    significant = one.gain.lo is None or excludes_one(one.gain)
    return percent_gain(one.gain) if significant else NOT_SIGNIFICANT
