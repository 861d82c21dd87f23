"""Formats of the metrics of `records/metrics.py`, and their order in each place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loaderbench.consumers import consumer_kind
from loaderbench.records import Configuration, Environment, Interval, RunRecord, Trial
from loaderbench.records.metrics import BY_ID, METRICS, Metric, Unit
from loaderbench.report import numbers
from loaderbench.report.model import Value
from loaderbench.report.words import reason_of


@dataclass(frozen=True)
class Scale:
    """A unit shared by all numbers of a table or an axis."""

    unit: str
    factor: float = 1.0
    digits: int = 3


SCALES: dict[Unit, Scale] = {
    "samples/s": Scale(""),
    "share": Scale("%", 100, 2),
    "percent": Scale("%", 1, 2),
    "s": Scale("s"),
    "bytes": Scale("GiB", 2**-30),
    "bytes/s": Scale("MiB/s", 2**-20),
    "count": Scale(""),
    "W": Scale("W"),
    "J": Scale("J"),
    "MHz": Scale("MHz"),
}

SAMPLES, WAIT, FIRST_BATCH = (BY_ID[name] for name in ("samples_per_s", "data_wait_share", "time_to_first_batch_s"))
CPU, GPU = BY_ID["cpu_percent_of_allotted"], BY_ID["gpu_utilization_percent"]
GPU_MEMORY, HOST_MEMORY = BY_ID["gpu_memory_used_bytes"], BY_ID["pss_bytes"]


def _ordered(metrics: Iterable[Metric], *first: str) -> tuple[Metric, ...]:
    """The metrics named `first`, then the others in the order of the table of metrics."""
    return tuple(sorted(metrics, key=lambda m: first.index(m.id) if m.id in first else len(first)))


KEY_FIGURES = (SAMPLES, WAIT, GPU, GPU_MEMORY, CPU)
OF_CONFIGURATIONS = tuple(metric for metric in METRICS if metric.over_rounds and metric.in_tables)
IN_HEAT_MAP = _ordered((m for m in METRICS if m.in_heat_map), SAMPLES.id, WAIT.id, GPU.id, GPU_MEMORY.id)
OF_TRIALS = _ordered(
    (metric for metric in METRICS if metric.in_tables),
    "samples_per_s", "data_wait_share", "time_to_first_batch_s", "batches", "epoch_ends", "cpu_percent_of_allotted",
    "pss_bytes", "rss_bytes", "shm_peak_bytes",
)  # fmt: skip


def with_data(metrics: Sequence[Metric], configurations: Sequence[Configuration], run: RunRecord) -> tuple[Metric, ...]:
    """The metrics that at least one configuration of the run has, to avoid empty columns."""
    return tuple(m for m in meant_in(run, metrics) if any(m.of_configuration(c) is not None for c in configurations))


def meant_in(run: RunRecord, metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """The metrics that apply to a run. Without a consumer, the time in `next()` is not a data wait."""
    consumes = consumer_kind(run.consumer).consumes
    return tuple(metric for metric in metrics if consumes or not metric.needs_consumer)


def of_configuration(metric: Metric, configuration: Configuration, environment: Environment) -> Value:
    """The metric of one configuration, or why it is missing."""
    reason = reason_of(metric.id, configuration.not_measured, environment.not_measured)
    if reason is None and metric.gpu and not environment.gpus:
        reason = "no GPU"
    return _written(metric.of_configuration(configuration), metric.unit, reason)


def of_trial(metric: Metric, trial: Trial, reason: str | None) -> Value:
    """The metric of one trial, or the reason why it is missing."""
    return _written(metric.of_trial(trial), metric.unit, reason)


def _written(found: Interval | float | None, unit: Unit, reason: str | None) -> Value:
    if unit == "share":
        return numbers.share(found, reason)
    if isinstance(found, Interval):
        return numbers.interval(found, reason, "" if unit == "samples/s" else unit)
    writers = {
        "percent": numbers.percent,
        "s": numbers.duration,
        "bytes": numbers.memory,
        "bytes/s": numbers.memory_rate,
        "count": numbers.whole,
    }
    return writers[unit](found, reason) if unit in writers else numbers.quantity(found, SCALES[unit].unit, reason)


def rate(value: Value) -> str:
    """The rate for use in a sentence, as `836 samples/s (803-870)` with an en dash, or why it is missing."""
    if value.missing or not value.detail:
        return value.text if value.missing else f"{value.text} samples/s"
    return f"{value.main} samples/s ({value.detail})"


def estimate(metric: Metric, configuration: Configuration) -> float | None:
    """The estimate for a configuration, in the unit of the metric's scale."""
    measured = metric.of_configuration(configuration)
    value = measured.est if isinstance(measured, Interval) else measured
    return None if value is None else value * SCALES[metric.unit].factor


def short(metric: Metric, configuration: Configuration) -> str | None:
    """The number without its unit, for a table that names the unit."""
    value = estimate(metric, configuration)
    return None if value is None else numbers.number(value, 3 if abs(value) >= 99.5 else SCALES[metric.unit].digits)


def unit_of(metric: Metric) -> str:
    """The unit of the metric's scale, and what a percentage is relative to; empty if the label says it."""
    return f"{SCALES[metric.unit].unit} {metric.of}".rstrip()


def named_with_unit(metric: Metric) -> str:
    """The label with its unit: `GPU memory, GiB`."""
    return ", ".join(filter(None, (metric.label, unit_of(metric))))
