"""What measurements of other worker counts say of a configuration: in the sweep, in fixes, and in trials of their own.

If workers are the limit, each one more adds what one of the present ones does. At least half of that is expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.thresholds import MOST, NOTICED
from loaderbench.diagnosis.worker_settings import but_workers
from loaderbench.loaders import worker_count
from loaderbench.records import Config, Interval, Trial, WorkerSetting
from loaderbench.statistics.configurations import ratio_of
from loaderbench.statistics.intervals import is_above_one, is_below_one
from loaderbench.statistics.judging import SMALL


@dataclass(frozen=True)
class _Other:
    """Another worker count than `now`, or the same with one library thread in each, and its gain."""

    now: int
    workers: int
    gain: Interval

    @property
    def expected(self) -> float:
        """The gain of more workers, as a ratio, from which on they are what was missing."""
        return 1 + MOST * (self.workers - max(1, self.now)) / max(1, self.now)

    @property
    def is_slower(self) -> bool:
        return is_below_one(self.gain)

    @property
    def is_more_and_no_faster(self) -> bool:
        hi = self.gain.hi
        return self.workers > max(1, self.now) and hi is not None and hi <= min(SMALL, self.expected)

    @property
    def is_more_and_faster(self) -> bool:
        return self.workers > max(1, self.now) and is_above_one(self.gain) and self.gain.est >= self.expected

    @property
    def is_less_and_faster(self) -> bool:
        return 0 < self.workers <= self.now and is_above_one(self.gain) and self.gain.est >= 1 + NOTICED


def with_other_counts(
    facts: Facts,
    config: Config,
    loader: Mapping[str, Any],
    trials: Sequence[Trial],
    settings: Sequence[WorkerSetting] = (),
) -> Facts:
    """The same facts with what other counts showed: in `trials`, by rounds that hold both, and in `settings`."""
    now = worker_count(config, loader) or 0
    found = [*_measured_in(trials, config, loader), *(_of(one, config, loader) for one in settings)]
    parallel = [one for one in found if one.workers > 0]
    return replace(
        facts,
        fewer_are_slower=any(one.is_slower for one in found if 0 < one.workers < now),
        fewer_are_faster=any(one.is_less_and_faster for one in found),
        workers_are_slower=now == 0 and bool(parallel) and all(one.is_slower for one in parallel),
        more_are_no_faster=any(one.is_more_and_no_faster for one in found),
        more_are_faster=any(one.is_more_and_faster for one in found),
    )


def _measured_in(trials: Sequence[Trial], config: Config, loader: Mapping[str, Any]) -> list[_Other]:
    """Configurations that differ in the worker count alone."""
    others = {tuple(trial.config.items()): trial.config for trial in trials}.values()
    alike = [other for other in others if other != config and but_workers(other) == but_workers(config)]
    gains = ((other, ratio_of(other, config, trials)) for other in alike)
    return [_other(other, config, loader, gain) for other, gain in gains if gain is not None]


def _of(one: WorkerSetting, config: Config, loader: Mapping[str, Any]) -> _Other:
    return _other({**config, **one.change}, config, loader, one.gain)


def _other(other: Config, config: Config, loader: Mapping[str, Any], gain: Interval) -> _Other:
    return _Other(worker_count(config, loader) or 0, worker_count(other, loader) or 0, gain)
