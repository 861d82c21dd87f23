"""Which configuration a run is judged by, and what limits its rate from outside the loader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loaderbench.diagnosis.facts import Facts, gather
from loaderbench.diagnosis.verdict import Subject
from loaderbench.loaders import backend_of, worker_count
from loaderbench.records import Best, Config, Configuration, Environment, Interval, Trial, varying
from loaderbench.statistics.configurations import ratio_of

AT_THE_CAP = 0.97
"""From this share of the demand on, the emulated accelerator and not the loader may set the rate."""


def find_subject(
    best: Best | None, configurations: Sequence[Configuration], *, from_outside: bool = False
) -> Best | Configuration | None:
    """What the verdict is about: the best, else what looked fastest; `None` where nothing was measured.

    `from_outside`: of a process that was attached to, whose rate nobody knows.
    """
    if from_outside:
        return next((found for found in configurations if found.data_wait_share), None)
    if best is not None and best.data_wait_share is not None:
        return best
    measured = [found for found in configurations if found.rank and found.samples_per_s and found.data_wait_share]
    return min(measured, key=lambda found: found.rank or 0, default=None)


def subject_of(
    found: Best | Configuration, axes: Mapping[str, Sequence[Any]], facts: Facts | None, *, is_best: bool
) -> Subject | None:
    """The subject as a verdict names it, by the axes that vary; `None` where its rate or its wait was not measured."""
    known = found.samples_per_s is not None or (facts is not None and facts.from_outside)
    if not known or found.data_wait_share is None:
        return None
    return Subject(varying(found.config, axes), found.samples_per_s, found.data_wait_share, is_best, facts)


def expected_wait(rate: Interval, demand: float) -> Interval:
    """The share of its time that a consumer of this demand would wait for a loader of this rate, both in samples/s."""

    def short_of_it(found: float | None) -> float | None:
        return None if found is None else max(0.0, 1 - found / demand)

    return Interval(max(0.0, 1 - rate.est / demand), short_of_it(rate.hi), short_of_it(rate.lo))


def facts_of(config: Config, trials: Sequence[Trial], environment: Environment) -> Facts | None:
    """The facts of a configuration, and what the sweep says of those that differ from it in the worker count alone."""
    alike = [other for other in _configs(trials) if _but_workers(other) == _but_workers(config) and other != config]
    slower = [other for other in alike if _is_slower(other, config, trials)]
    count = worker_count(config, {})
    fewer = count is not None and any(0 < _count(other) < count for other in slower)
    parallel = [other for other in alike if _count(other) > 0]
    return gather(
        [trial for trial in trials if trial.config == config],
        environment,
        fewer_are_slower=fewer,
        workers_are_slower=count == 0 and bool(parallel) and all(other in slower for other in parallel),
    )


def _configs(trials: Sequence[Trial]) -> list[Config]:
    return list({tuple(trial.config.items()): trial.config for trial in trials}.values())


def _but_workers(config: Config) -> Config:
    return {axis: value for axis, value in config.items() if axis not in backend_of(config).worker_axes}


def _count(config: Config) -> int:
    return worker_count(config, {}) or 0


def _is_slower(other: Config, config: Config, trials: Sequence[Trial]) -> bool:
    ratio = ratio_of(other, config, trials)
    return ratio is not None and ratio.hi is not None and ratio.hi < 1


def rate_cap(notes: Sequence[str], configurations: Sequence[Configuration], demand: float | None) -> tuple[str, ...]:
    """A remark that the fastest rate is what an emulated GPU asks for; none if `notes` hold it already."""
    if demand is None:
        return ()
    rates = [found.samples_per_s.est for found in configurations if found.samples_per_s]
    remark = (
        f"Samples/s are capped by the target of {demand:,.10g}; the loader may be faster. "
        "Set a higher consumer.demand, or consumer.kind: none"
    )
    capped = max(rates, default=0.0) >= AT_THE_CAP * demand
    return (remark,) if capped and remark not in notes else ()
