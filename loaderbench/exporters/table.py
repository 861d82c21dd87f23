"""Data of a run that every tracker exports: metrics of each configuration, and facts about the run as text.

The metrics are those of `records/metrics.py`. An interval adds its bounds under `_lo` and `_hi`. Values that were not
measured are omitted, never 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from loaderbench.records import (
    Config,
    Configuration,
    Interval,
    RunRecord,
    Scalar,
    Trial,
    config_name,
    format_scalar,
    varying,
)
from loaderbench.records.metrics import METRICS, Metric
from loaderbench.records.words import moment

Numbers = dict[str, float]


@dataclass(frozen=True)
class Round:
    """One completed trial of a configuration."""

    number: int
    numbers: Numbers


@dataclass(frozen=True)
class Row:
    """One configuration over all its rounds. `name` is unique in the run and usable as a folder name."""

    name: str
    config: Config
    numbers: Numbers
    rounds: tuple[Round, ...]
    is_best: bool


def rows(run: RunRecord) -> list[Row]:
    """The configurations of a run, in order."""
    from loaderbench.report.metrics import meant_in

    by_id, names = {trial.id: trial for trial in run.sweep}, dict[str, int]()
    metrics = meant_in(run, METRICS)
    result = []
    for configuration in run.configurations:
        name = in_a_path(config_name(varying(configuration.config, run.plan.axes) or configuration.config))
        names[name] = names.get(name, 0) + 1
        trials = [by_id[one] for one in configuration.trials if one in by_id and by_id[one].status == "completed"]
        result.append(
            Row(
                name=name if names[name] == 1 else f"{name}-{names[name]}",
                config=configuration.config,
                numbers=numbers_of(configuration, metrics),
                rounds=tuple(Round(trial.round, numbers_of_trial(trial, metrics)) for trial in trials),
                is_best=run.best is not None and run.best.config == configuration.config,
            )
        )
    return result


def numbers_of(configuration: Configuration, metrics: Sequence[Metric] = METRICS) -> Numbers:
    """The given metrics of a configuration."""
    values = ((metric.id, metric.of_configuration(configuration)) for metric in metrics if metric.over_rounds)
    return dict(pair for name, value in values for pair in _with_bounds(name, value))


def numbers_of_trial(trial: Trial, metrics: Sequence[Metric] = METRICS) -> Numbers:
    """The given metrics of a trial."""
    return dict(pair for metric in metrics for pair in _with_bounds(metric.id, metric.of_trial(trial)))


def summary(run: RunRecord) -> Numbers:
    """The metrics of the best configuration, or of the only one, and the gain over the baseline."""
    own = [row for row in rows(run) if row.is_best] or (rows(run) if len(run.configurations) == 1 else [])
    return {**(own[0].numbers if own else {}), **gain_over_baseline(run)}


def gain_over_baseline(run: RunRecord) -> Numbers:
    """The gain of the best configuration with its bounds; empty if there is no best one."""
    return dict(_with_bounds("gain_over_baseline", run.best.gain if run.best is not None else None))


def of_one_type(values: Sequence[Scalar]) -> list[Scalar]:
    """The values of an axis, converted to text if they have several types. Integers and floats count as one type."""
    kinds = {float if type(value) is int else type(value) for value in values if value is not None}
    return [*values] if len(kinds) < 2 else [None if value is None else format_scalar(value) for value in values]


def facts(run: RunRecord) -> dict[str, str]:
    """Facts about the run as text, by name: its conclusions and conditions."""
    verdict, environment = run.verdict, run.environment
    named = {
        "verdict": str(verdict),
        "bound": verdict.bound,
        "stage": verdict.stage,
        "limit": verdict.limit,
        "confidence": verdict.confidence,
        "best": config_name(run.best.config) if run.best else None,
        "baseline": config_name(run.baseline.config),
        "dataset": run.dataset.description,
        "consumer": run.consumer,
        "cpu": environment.cpu_model,
        "cpus_allotted": f"{environment.cpus_allotted:g}",
        "gpus": ", ".join(gpu.name for gpu in environment.gpus),
        "torch": environment.versions.get("torch"),
        "python": environment.python,
        "loaderbench": run.loaderbench_version,
    }
    return {name: text for name, text in named.items() if text}


def run_name(run: RunRecord) -> str:
    """A folder name with the suite and the start of the run: `images-20261124T213000Z`."""
    started = moment(run.started_at)
    return in_a_path(run.name) + (f"-{started:%Y%m%dT%H%M%SZ}" if started else "")


def in_a_path(text: str) -> str:
    """The text as one path component that needs no shell quoting."""
    return re.sub(r"[^\w.=+-]+", ",", text).strip(",.")[:150] or "unnamed"


def _with_bounds(name: str, value: Interval | float | None) -> Iterator[tuple[str, float]]:
    if isinstance(value, Interval):
        yield from (pair for end, one in _ends(name, value) for pair in _with_bounds(end, one))
    elif value is not None and isfinite(value):
        yield name, float(value)


def _ends(name: str, interval: Interval) -> tuple[tuple[str, float | None], ...]:
    return (name, interval.est), (f"{name}_lo", interval.lo), (f"{name}_hi", interval.hi)
