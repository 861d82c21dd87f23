"""Costs of the parts of a loader: isolation runs, freed stages, epochs, workers and GPU memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from loaderbench.records.words import (
    Basis,
    Config,
    CostName,
    Interval,
    IsolationRunName,
    Reasons,
    Stage,
    WorkerSettingName,
)


@dataclass(frozen=True)
class Overhead:
    """Overhead of measuring: the recorder per batch, tracing per sample, and the monitors as a share of one core."""

    per_batch_s: float | None
    share_of_wall: float | None
    monitor_cpu_share: float | None
    tracing_per_sample_s: float | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class Noise:
    """The steadiness of the machine during a run.

    `reference_decode_spread` is the ratio of the slowest to the fastest decode of one fixed JPEG, timed before and
    after every trial. `aa_difference` is the ratio of a configuration's rate to its own rate in a second trial: an A/A
    test.
    """

    reference_decode_spread: float | None
    aa_difference: Interval | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EpochCost:
    """Seconds that every epoch spends outside its steady state.

    `share` is their share of the epoch, or `None` if the epoch's length is unknown. `name` is `first_batch` (with
    worker startup), `boundary` (from one epoch to the next) or `stragglers`.
    """

    name: CostName
    s_per_epoch: float
    share: float | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class IsolationRun:
    """One configuration with parts removed. `time_s` is per batch or per sample, as `Isolation.per` says.

    `trials` are the ids of its trials. For `end_to_end`, with nothing removed, they are trials of the sweep.
    """

    name: IsolationRunName
    time_s: Interval | None
    samples_per_s: Interval | None
    trials: tuple[str, ...] = ()
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CopyBandwidth:
    """GB/s (10**9 bytes) from the host to the GPU, in copies of one batch.

    `pinned` says whether the configuration copies from pinned memory. `wanted_gb_per_s` is the bandwidth needed to feed
    the GPU at the rate it reaches with batches already on the device. `link_gb_per_s` is the one-way capacity of the
    PCIe link.
    """

    pinned: bool
    bytes_per_sample: float
    pinned_gb_per_s: Interval
    pageable_gb_per_s: Interval
    wanted_gb_per_s: float | None
    link_gb_per_s: float | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Isolation:
    """The isolation runs of one configuration, measured or not. Each leaves out a part of the pipeline.

    Differences are in seconds per batch (or sample), paired by round. A difference whose interval includes 0 is not
    significant. `transfer_s` is the time to replay batches from the host minus the time to replay them from the device.
    `fetch_s` is the loader's time with a cold page cache minus its time with a warm one. `interference_s` is the
    end-to-end time minus the slower of loader and consumer alone. `notes` describe how the differences were measured.
    """

    config: Config
    per: Literal["batch", "sample"]
    rounds: int
    runs: tuple[IsolationRun, ...]
    transfer_s: Interval | None
    fetch_s: Interval | None
    interference_s: Interval | None
    notes: tuple[str, ...] = ()
    not_measured: Reasons = field(default_factory=dict)
    copy: CopyBandwidth | None = None


@dataclass(frozen=True, kw_only=True)
class FreedPart:
    """The gain if one named transform were free, measured like a `Bottleneck`."""

    name: str
    samples_per_s_if_free: Interval
    gain_if_free: Interval
    trials: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Bottleneck:
    """The measured gain of the verdict's configuration if one stage were free.

    `samples_per_s_if_free` is the loader's own rate, not capped by a consumer. `gain_if_free` is its ratio to the rate
    of the unchanged loader, paired by round. `parts` are the named transforms of the stage. Source: the virtual
    speedups of causal profiling (Curtsinger and Berger, Coz, SOSP 2015), with replayed results in place of inserted
    pauses.
    """

    stage: Stage
    samples_per_s_if_free: Interval
    gain_if_free: Interval
    basis: Basis = "measured"
    parts: tuple[FreedPart, ...] = ()
    trials: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorkerSetting:
    """The measured gain of the verdict's configuration with other workers or threads, from the same rounds.

    `change` holds the arguments that differ. `samples_per_s` and `gain` are defined as in `Bottleneck`, with no stage
    free.
    """

    name: WorkerSettingName
    change: Config
    samples_per_s: Interval
    gain: Interval
    trials: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Contention:
    """The cost of a sample with this number of workers, in the verdict's configuration otherwise unchanged.

    `wall_s_per_sample` is the wall time of all workers together, and `cpu_s_per_sample` the CPU time of the stages. The
    ratios are relative to the smallest number of workers, paired by round. `beyond_cores` is the wall time divided by
    the time that CPU time and available CPUs explain. A value above 1 means that workers share something else, such as
    a lock, the GIL or a disk.
    """

    workers: int
    wall_s_per_sample: Interval | None
    cpu_s_per_sample: Interval | None
    wall_ratio: Interval | None
    cpu_ratio: Interval | None
    beyond_cores: Interval | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class BatchMemory:
    """GPU memory with batches of one size: peaks of torch's allocator, and of the whole device if NVML reports them.

    `headroom_share` is the share of the device's memory that was free at its peak.
    """

    batch_size: int
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int
    used_bytes: int | None
    headroom_share: float | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GpuMemory:
    """GPU memory by batch size, and a line fitted to the reserved peaks.

    `largest_batch` is predicted, not measured: at this size, the line reaches the device's memory minus `others_bytes`.
    The latter are used by CUDA itself and by other programs. `largest_batch` is less than the smallest of `too_large`,
    the batch sizes that ran out of memory.
    """

    total_bytes: int
    batches: tuple[BatchMemory, ...]
    fixed_bytes: float | None = None
    bytes_per_sample: float | None = None
    others_bytes: int | None = None
    largest_batch: int | None = None
    too_large: tuple[int, ...] = ()
    not_measured: Reasons = field(default_factory=dict)
