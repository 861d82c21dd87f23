"""What parts of a loader cost: by isolation runs, by freed stages, per epoch, per worker, and in GPU memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from loaderbench.records.words import (
    Basis,
    Config,
    CostName,
    Interval,
    IsolationName,
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
    """How steady the machine was.

    `reference_decode_spread` is the slowest over the fastest decode of one fixed JPEG, timed before and after every
    trial. `aa_difference` is the ratio of one configuration to itself: an A/A test.
    """

    reference_decode_spread: float | None
    aa_difference: Interval | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EpochCost:
    """Seconds that every epoch loses outside its steady state, and their share of it; `None` for an unknown length.

    `name`: `first_batch` (with the start of the workers), `boundary` (from one epoch to the next) or `stragglers`.
    """

    name: CostName
    s_per_epoch: float
    share: float | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class IsolationRun:
    """One configuration with parts of it removed. `time_s` is per batch or per sample, as `Isolation.per` says.

    `trials` are the ids of its trials; `end_to_end`, with nothing removed, has those of the sweep.
    """

    name: IsolationName | Literal["end_to_end"]
    time_s: Interval | None
    samples_per_s: Interval | None
    trials: tuple[str, ...] = ()
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CopyBandwidth:
    """GB/s (10**9 bytes) from the host to the GPU, in copies of one batch.

    `pinned`: the memory that the configuration copies from. `wanted_gb_per_s` is what the GPU takes with batches that
    are on it already. `link_gb_per_s` is what the PCIe link carries one way.
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
    """The isolation runs of one configuration, measured or not: each leaves out a part of the pipeline.

    Differences are in seconds per batch (or sample), paired by round. An interval that includes 0 is not significant.
    `transfer_s`: replaying from the host minus from the device. `fetch_s`: the loader with a cold page cache minus
    with a warm one. `interference_s`: end to end minus the slower of loader and consumer alone. `notes` describe how
    they were measured.
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
    """A named transform that costs nothing, as `Bottleneck` has a stage."""

    name: str
    samples_per_s_if_free: Interval
    gain_if_free: Interval
    trials: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Bottleneck:
    """What the verdict's configuration would gain if one stage were free, measured.

    `samples_per_s_if_free` is the loader's own rate, without a consumer that caps it. `gain_if_free` is its ratio over
    the unchanged loader, paired by round. `parts` are the transforms with a name. Source: the virtual speedups of
    causal profiling (Curtsinger and Berger, Coz, SOSP 2015), with replayed results in place of inserted pauses.
    """

    stage: Stage
    samples_per_s_if_free: Interval
    gain_if_free: Interval
    basis: Basis = "measured"
    parts: tuple[FreedPart, ...] = ()
    trials: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorkerSetting:
    """What the verdict's configuration would gain with other workers, measured in the same rounds.

    `change` holds the arguments that differ. `samples_per_s` and `gain` are those of `Bottleneck`, with no stage free.
    """

    name: WorkerSettingName
    change: Config
    samples_per_s: Interval
    gain: Interval
    trials: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Contention:
    """What a sample costs at this number of workers, with the rest of the verdict's configuration.

    `wall_s_per_sample` is in seconds of all workers together, `cpu_s_per_sample` in seconds of its stages on a CPU.
    The ratios are over the smallest number of workers, paired by round. `beyond_cores` is the wall time over what
    CPU time and available CPUs explain. Above 1, something else is shared, such as a lock, the GIL or a disk.
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
    """GPU memory with batches of one size: peaks of torch's allocator, and of the whole device where NVML reads it.

    `headroom_share` is the part of the whole device that was free at its peak.
    """

    batch_size: int
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int
    used_bytes: int | None
    headroom_share: float | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GpuMemory:
    """GPU memory by batch size, and the line through the reserved peaks.

    `largest_batch` is predicted, not measured: at this size, the line reaches the device's memory without
    `others_bytes`, which are CUDA's own and those of other programs. It is less than the smallest of `too_large`, the
    batch sizes that ran out of memory.
    """

    total_bytes: int
    batches: tuple[BatchMemory, ...]
    fixed_bytes: float | None = None
    bytes_per_sample: float | None = None
    others_bytes: int | None = None
    largest_batch: int | None = None
    too_large: tuple[int, ...] = ()
    not_measured: Reasons = field(default_factory=dict)
