"""The table of metrics: definition, place in a trial and a configuration, and how rounds become one value.

A monitor adds a metric with one entry here. Metrics without their own field are in `metrics` of trials and
configurations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal

from loaderbench.records.conclusions import Configuration
from loaderbench.records.trial import GpuUse, Trial
from loaderbench.records.words import Interval

Unit = Literal["samples/s", "share", "percent", "s", "bytes", "bytes/s", "count", "W", "J", "MHz"]
OverRounds = Literal["rate", "share", "mean", "largest"]
"""How the trials of a configuration become one value. `rate` and `share` also get an interval."""
_UNITS_OF_INTERVALS = ("samples/s", "share", "s")


@dataclass(frozen=True)
class Strip:
    """Where a metric's readings are drawn over time. In the name of a `series`, `{}` is the device's number."""

    series: str
    panel: str
    name: str
    unit: Unit
    points: bool = False


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric. `over_rounds` is `None` for a metric that only trials have.

    `gpu` reads the metric from a device's record. `of` names what a percentage is relative to. `trial_label` and
    `trial_hint` replace `label` and `hint` in a table of trials. If `zeros` is false, that table omits a column of
    zeros. If `needs_consumer` is true, the metric is not shown for a run without a consumer, where it has no meaning.
    """

    id: str
    label: str
    unit: Unit
    hint: str = ""
    over_rounds: OverRounds | None = None
    of: str = ""
    trial_label: str | None = None
    trial_hint: str | None = None
    gpu: Callable[[GpuUse], float | None] | None = None
    in_heat_map: bool = False
    in_tables: bool = True
    zeros: bool = True
    drawn: Strip | None = None
    needs_consumer: bool = False

    def __post_init__(self) -> None:
        """Raise `ValueError` for an interval that a configuration cannot store or a report cannot format."""
        interval = self.over_rounds in ("rate", "share")
        if interval and not (self.has_field and self.unit in _UNITS_OF_INTERVALS):
            raise ValueError(
                f"{self.id}: over_rounds={self.over_rounds!r} needs a field of Configuration and one of the units "
                f"{', '.join(_UNITS_OF_INTERVALS)}; use 'mean' or 'largest'"
            )

    @property
    def has_field(self) -> bool:
        """Whether a configuration has a field of this name. If not, the metric is in its `metrics`."""
        return self.id in _CONFIGURATION_FIELDS

    @property
    def reason_field(self) -> str:
        """The key in a trial's `not_measured` that explains a missing value."""
        return "gpus" if self.gpu else self.id

    @property
    def strip(self) -> Strip:
        """Where the metric's readings are drawn."""
        return self.drawn or Strip(self.id, self.label, self.label, self.unit)

    def of_trial(self, trial: Trial) -> float | None:
        """The value of one trial, or the highest over its devices."""
        if self.gpu is not None:
            return max((value for value in map(self.gpu, trial.gpus) if value is not None), default=None)
        value: float | None = getattr(trial, self.id) if self.id in _TRIAL_FIELDS else trial.metrics.get(self.id)
        return value

    def of_round(self, trial: Trial) -> float | None:
        """The value that represents a trial among its rounds, from the busiest device."""
        if self.gpu is None:
            return self.of_trial(trial)
        return self.gpu(_device(trial)) if trial.gpus else None

    def of_configuration(self, found: Configuration) -> Interval | float | None:
        """The configuration's value over all rounds."""
        value: Interval | float | None = getattr(found, self.id) if self.has_field else found.metrics.get(self.id)
        return value


def _device(trial: Trial) -> GpuUse:
    """The device that did the work: the one with the most memory used."""
    return max(trial.gpus, key=lambda gpu: (gpu.memory_used_bytes or 0, gpu.utilization_percent or 0))


def _of_performance(name: str) -> Callable[[GpuUse], float | None]:
    """Return a reader of one of NVML's performance metrics."""

    def value(gpu: GpuUse) -> float | None:
        found: float | None = getattr(gpu.performance, name, None)
        return found

    return value


_TRIAL_FIELDS = {field.name for field in fields(Trial)}
_CONFIGURATION_FIELDS = {field.name for field in fields(Configuration)}

METRICS = (
    Metric(
        id="samples_per_s",
        label="Samples/s",
        unit="samples/s",
        hint="in the steady state",
        over_rounds="rate",
        in_heat_map=True,
    ),
    Metric(
        id="slowest_rank_samples_per_s",
        label="Slowest rank",
        unit="samples/s",
        hint="the rate of the slowest rank",
        over_rounds="mean",
    ),
    Metric(
        id="data_wait_share",
        label="Data wait",
        unit="share",
        hint="% of step time blocked in next()",
        over_rounds="share",
        of="of step time",
        trial_label="Data wait, % of step time",
        in_heat_map=True,
        needs_consumer=True,
        drawn=Strip("data_wait_s", "Data wait per batch", "data wait", "s", points=True),
    ),
    Metric(
        id="cpu_percent_of_allotted",
        label="CPU",
        unit="percent",
        hint="% of available CPUs, workers and main process together",
        over_rounds="mean",
        of="of available CPUs",
        trial_label="CPU, % of available CPUs",
        in_heat_map=True,
    ),
    Metric(
        id="gpu_utilization_percent",
        label="GPU utilization",
        unit="percent",
        hint="time with a kernel resident, not how busy the GPU was",
        over_rounds="mean",
        trial_hint="time with a kernel resident; highest of all GPUs",
        gpu=lambda gpu: gpu.utilization_percent,
        in_heat_map=True,
        drawn=Strip("gpu{}_utilization_percent", "GPU utilization", "GPU {}", "percent"),
    ),
    Metric(
        id="gpu_sm_active_percent",
        label="GPU SM activity",
        unit="percent",
        hint="share of SMs active",
        over_rounds="mean",
        of="of the multiprocessors",
        gpu=_of_performance("sm_active_percent"),
        drawn=Strip("gpu{}_sm_active_percent", "GPU SM activity", "GPU {}", "percent"),
    ),
    Metric(
        id="gpu_tensor_active_percent",
        label="GPU tensor cores",
        unit="percent",
        hint="share of time with tensor cores active",
        over_rounds="mean",
        gpu=_of_performance("tensor_active_percent"),
    ),
    Metric(
        id="gpu_dram_active_percent",
        label="GPU memory bandwidth",
        unit="percent",
        over_rounds="mean",
        of="of its maximum",
        gpu=_of_performance("dram_active_percent"),
    ),
    Metric(
        id="gpu_nvjpg_percent",
        label="GPU JPEG engines",
        unit="percent",
        hint="mean of all",
        over_rounds="mean",
        gpu=_of_performance("nvjpg_percent"),
    ),
    Metric(
        id="gpu_pcie_rx_bytes_per_s",
        label="PCIe to the GPU",
        unit="bytes/s",
        over_rounds="mean",
        gpu=_of_performance("pcie_rx_bytes_per_s"),
    ),
    Metric(
        id="gpu_pcie_tx_bytes_per_s",
        label="PCIe from the GPU",
        unit="bytes/s",
        over_rounds="mean",
        gpu=_of_performance("pcie_tx_bytes_per_s"),
        in_tables=False,
    ),
    Metric(
        id="gpu_memory_used_bytes",
        label="GPU memory",
        unit="bytes",
        hint="peak",
        over_rounds="largest",
        trial_hint="peak; highest of all GPUs",
        gpu=lambda gpu: gpu.memory_used_bytes,
        in_heat_map=True,
        drawn=Strip("gpu{}_memory_used_bytes", "GPU memory", "GPU {}", "bytes"),
    ),
    Metric(
        id="gpu_power_w",
        label="GPU power",
        unit="W",
        hint="mean in the steady state",
        over_rounds="mean",
        trial_hint="mean in the steady state; highest of all GPUs",
        gpu=lambda gpu: gpu.power_w,
        drawn=Strip("gpu{}_power_w", "GPU power", "GPU {}", "W"),
    ),
    Metric(
        id="gpu_energy_per_sample_j",
        label="GPU energy/sample",
        unit="J",
        hint="power of the GPU times its time per sample",
        over_rounds="mean",
        gpu=lambda gpu: gpu.energy_per_sample_j,
    ),
    Metric(
        id="gpu_sm_clock_mhz",
        label="GPU clock",
        unit="MHz",
        hint="SM clock, mean in the steady state",
        over_rounds="mean",
        gpu=lambda gpu: gpu.sm_clock_mhz,
        drawn=Strip("gpu{}_sm_clock_mhz", "GPU clock", "GPU {}", "MHz"),
    ),
    Metric(
        id="gpu_memory_clock_mhz",
        label="GPU memory clock",
        unit="MHz",
        over_rounds="mean",
        gpu=lambda gpu: gpu.memory_clock_mhz,
        in_tables=False,
    ),
    Metric(
        id="pss_bytes",
        label="RAM (PSS)",
        unit="bytes",
        hint="all processes, read once after the steady state; shared pages counted once",
        over_rounds="largest",
        trial_label="PSS",
        trial_hint="host memory, read once after the steady state; shared pages counted once",
    ),
    Metric(
        id="rss_bytes",
        label="Host memory (RSS)",
        unit="bytes",
        hint="peak of all processes, shared pages counted in each",
        over_rounds="largest",
        trial_label="RSS",
        trial_hint="peak host memory, shared pages counted in each",
        drawn=Strip("rss_bytes", "Host memory", "RSS", "bytes"),
    ),
    Metric(
        id="shm_peak_bytes",
        label="Shared memory",
        unit="bytes",
        hint="peak",
        over_rounds="largest",
        drawn=Strip("shm_bytes", "Host memory", "shared memory", "bytes"),
    ),
    Metric(
        id="time_to_first_batch_s",
        label="First batch",
        unit="s",
        hint="from iter(loader) to the first batch, including worker startup",
        over_rounds="rate",
    ),
    Metric(id="batches", label="Batches", unit="count"),
    Metric(
        id="epoch_ends",
        label="Epoch ends",
        unit="count",
        trial_hint="in the steady state; each restarts the loader",
        zeros=False,
    ),
    Metric(
        id="disk_read_bytes_per_s",
        label="Disk reads",
        unit="bytes/s",
        in_tables=False,
        drawn=Strip("disk_read_bytes_per_s", "Disk reads", "disk reads", "bytes/s"),
    ),
)
BY_ID = {metric.id: metric for metric in METRICS}
