"""What measurements with more or fewer workers say about a configuration: in the sweep, in fixes, and on their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import fewer_workers
from loaderbench.diagnosis.thresholds import NOTICED
from loaderbench.diagnosis.worker_settings import ONE_THREAD, alike, noticeable_gain
from loaderbench.loaders import worker_count
from loaderbench.records import Config, Interval, Trial, WorkerSetting
from loaderbench.statistics.configurations import ratio_of
from loaderbench.statistics.intervals import is_above_one, is_below_one
from loaderbench.statistics.judging import SMALL, WORTH_IT


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
