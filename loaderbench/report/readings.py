"""The metrics of a configuration: how each is called, where it is read, how it is written, for the whole page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loaderbench.records import Configuration, Environment, Interval
from loaderbench.report import numbers
from loaderbench.report.parts import Value
from loaderbench.report.words import reason_of

GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric. `estimate` is its plain number in `unit`, `value` all that is known of it."""

    id: str
    label: str
    unit: str
    hint: str
    estimate: Callable[[Configuration], float | None]
    value: Callable[[Configuration, str | None], Value]
    digits: int = 3

    def read(self, configuration: Configuration, environment: Environment) -> Value:
        """The metric of one configuration, or why there is none."""
        reason = reason_of(self.id, configuration.not_measured, environment.not_measured)
        if reason is None and self.id.startswith("gpu_") and not environment.gpus:
            reason = "no accelerator"
        return self.value(configuration, reason)

    def short(self, configuration: Configuration) -> str | None:
        """The number alone, for a cell whose table names the unit."""
        found = self.estimate(configuration)
        return None if found is None else numbers.number(found, 3 if abs(found) >= 99.5 else self.digits)


def _est(value: Interval | None, factor: float = 1) -> float | None:
    return None if value is None else value.est * factor


def _gib(value: float | None) -> float | None:
    return None if value is None else value / GIB


SAMPLES = Metric(
    id="samples_per_s",
    label="Samples/s",
    unit="samples/s",
    hint="over the steady state",
    estimate=lambda c: _est(c.samples_per_s),
    value=lambda c, why: numbers.interval(c.samples_per_s, why),
)
WAIT = Metric(
    id="data_wait_share",
    label="Data wait share",
    unit="%",
    hint="of the steady state, the consumer stood in next()",
    estimate=lambda c: _est(c.data_wait_share, 100),
    value=lambda c, why: numbers.share(c.data_wait_share, why),
    digits=2,
)
GPU = Metric(
    id="gpu_utilization_percent",
    label="GPU utilization",
    unit="%",
    hint="a kernel was resident; not how busy it was",
    estimate=lambda c: c.gpu_utilization_percent,
    value=lambda c, why: numbers.percent(c.gpu_utilization_percent, why),
    digits=2,
)
GPU_MEMORY = Metric(
    id="gpu_memory_used_bytes",
    label="GPU memory",
    unit="GiB",
    hint="the largest reading",
    estimate=lambda c: _gib(c.gpu_memory_used_bytes),
    value=lambda c, why: numbers.memory(c.gpu_memory_used_bytes, why),
)
CPU = Metric(
    id="cpu_percent_of_allotted",
    label="CPU",
    unit="% of allotted",
    hint="of the allotted CPUs, workers and main process together",
    estimate=lambda c: c.cpu_percent_of_allotted,
    value=lambda c, why: numbers.percent(c.cpu_percent_of_allotted, why),
    digits=2,
)
FIRST_BATCH = Metric(
    id="time_to_first_batch_s",
    label="First batch",
    unit="s",
    hint="from iter(loader) to the first batch, worker start included",
    estimate=lambda c: _est(c.time_to_first_batch_s),
    value=lambda c, why: numbers.interval(c.time_to_first_batch_s, why, "s"),
)
HOST_MEMORY = Metric(
    id="pss_bytes",
    label="Host memory (PSS)",
    unit="GiB",
    hint="of all processes, shared pages counted once; the largest reading",
    estimate=lambda c: _gib(c.pss_bytes),
    value=lambda c, why: numbers.memory(c.pss_bytes, why),
)
RESIDENT = Metric(
    id="rss_bytes",
    label="Host memory (RSS)",
    unit="GiB",
    hint="of all processes, shared pages counted in each; the largest reading",
    estimate=lambda c: _gib(c.rss_bytes),
    value=lambda c, why: numbers.memory(c.rss_bytes, why),
)
SHARED = Metric(
    id="shm_peak_bytes",
    label="Shared memory",
    unit="GiB",
    hint="the largest reading",
    estimate=lambda c: _gib(c.shm_peak_bytes),
    value=lambda c, why: numbers.memory(c.shm_peak_bytes, why),
)

HEAT_METRICS = (SAMPLES, WAIT, GPU, GPU_MEMORY, CPU)
RANKING_METRICS = (SAMPLES, WAIT, CPU, GPU, GPU_MEMORY, HOST_MEMORY, RESIDENT, SHARED, FIRST_BATCH)


def with_data(metrics: tuple[Metric, ...], configurations: tuple[Configuration, ...]) -> tuple[Metric, ...]:
    """The metrics that at least one configuration has: no empty frames for the others."""
    return tuple(m for m in metrics if any(m.estimate(c) is not None for c in configurations))
