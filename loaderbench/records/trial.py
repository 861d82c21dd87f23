"""One configuration measured once: readings of its loop, its loader and its machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.records.inside import (
    CodeLooks,
    Epochs,
    KernelLooks,
    MachineUse,
    Reads,
    SampleTimes,
    Spread,
    StackLooks,
    StageCost,
    Taking,
    WaitParts,
    WorkerStates,
)
from loaderbench.records.words import Config, Interval, IsolationName, Reasons, Role, Side, Status


@dataclass(frozen=True)
class Failure:
    """Why a trial failed: its kind (docs/reference/failures.md), the original message, and what to do.

    `by_oom_killer`: of what was killed, whether the kernel's OOM killer did it; `None` where nobody counts.
    `limit_bytes` is how much this machine has of the memory that ran out; `needed_bytes` is the size of the batches
    under way. Both are `None` if unknown, or if nothing ran out. `rank` is the one of several that failed.
    """

    kind: str
    message: str
    hint: str
    by_oom_killer: bool | None = None
    limit_bytes: int | None = None
    needed_bytes: int | None = None
    rank: int | None = None


@dataclass(frozen=True, kw_only=True)
class CopySpeed:
    """GB/s (10**9 bytes) of copies to a GPU in buffers of a batch's size, each waited for before the next."""

    index: int
    bytes_per_sample: float
    pinned_gb_per_s: Interval
    pageable_gb_per_s: Interval


SW_POWER_CAP = "power cap (SW power cap)"
"""The reason in `throttled` that a GPU at its power limit has."""


@dataclass(frozen=True, kw_only=True)
class GpuPerformance:
    """How busy the parts of a GPU were, over a steady state, by NVML's performance metrics (GPM).

    `sm_active_percent` is the share of SMs that were active. `tensor_active_percent` is the share of time with tensor
    cores active. `dram_active_percent` is the share of the memory bandwidth in use. PCIe is received by the GPU (`rx`)
    or sent (`tx`). `nvjpg_percent` is the mean over its JPEG engines. What NVML does not report is `None`.
    """

    sm_active_percent: float | None = None
    tensor_active_percent: float | None = None
    dram_active_percent: float | None = None
    pcie_rx_bytes_per_s: float | None = None
    pcie_tx_bytes_per_s: float | None = None
    nvjpg_percent: float | None = None


@dataclass(frozen=True)
class GpuUse:
    """One device during one trial, over its steady state.

    `utilization_percent` says that a kernel was resident, not that it was busy. `throttled` has, for each reason, the
    share of the readings in which it was active. `pcie_generation` and `pcie_width` are the highest that were read: an
    idle link is slower. Clocks and power are means. `memory_used_bytes` is the whole device's, by all programs; the
    peaks are those of torch in this process since its start, as PyTorch's allocator counts them. `copy_speed` is
    measured by isolation runs that replay batches from the host. `performance` is known since Hopper.
    """

    index: int
    uuid: str
    utilization_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    not_measured: Reasons = field(default_factory=dict)
    power_w: float | None = None
    energy_per_sample_j: float | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    throttled: dict[str, float] | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    copy_speed: CopySpeed | None = None
    performance: GpuPerformance | None = None


@dataclass(frozen=True)
class TimeSlices:
    """What a trial took in its time slices, while the others of its round were stopped. `seconds` are its own alone."""

    count: int
    batches: int
    samples: int
    seconds: float

    @property
    def samples_per_s(self) -> float:
        """Samples per second of its time slices."""
        return self.samples / self.seconds


@dataclass(frozen=True, kw_only=True)
class LoopTimes:
    """How fast batches came, and how long the consumer waited for them.

    Everything but `time_to_first_batch_s` belongs to the steady state. `epoch_ends` counts the epochs that ended in it,
    for a loader that cannot be made endless. `ended_early`: the loader ran out of data before it was long enough.
    `samples_per_epoch` is the dataset's length where it has one. `step` is the time from a batch to the request for
    the next. `step_stages` are its marked parts, per batch. `consumer_note` says what was unusual.
    `computed_in` is the type that a training step of `kind: model` computed in, such as `bfloat16` or `tf32`.
    """

    samples_per_s: float | None = None
    data_wait_share: float | None = None
    time_to_first_batch_s: float | None = None
    batches: int | None = None
    samples: int | None = None
    warmup_batches: int | None = None
    steady_s: float | None = None
    epoch_ends: int | None = None
    ended_early: bool = False
    samples_per_epoch: int | None = None
    data_wait: Spread | None = None
    step: Spread | None = None
    step_stages: dict[str, StageCost] | None = None
    epochs: Epochs | None = None
    recorder_s_per_batch: float | None = None
    consumer_note: str | None = None
    computed_in: str | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LoaderInside:
    """What was seen inside the loader.

    `stages` are costs per sample that add up; `stage_parts` are what they are made of, by name
    (`transform/RandomResizedCrop`). `main_process` takes the batches. `stack_looks` and `kernel_looks` are of a process
    that was attached to, `code_looks` also of profiles. `sampled` says what was thinned out to bound memory;
    `dataset_traits` what the dataset is or holds that decides which fixes fit it.
    """

    stages: dict[str, StageCost] | None = None
    stage_parts: dict[str, StageCost] | None = None
    workers: WorkerStates | None = None
    main_process: WorkerStates | None = None
    machine: MachineUse | None = None
    sample_times: SampleTimes | None = None
    reads: Reads | None = None
    taking: Taking | None = None
    wait_parts: WaitParts | None = None
    stack_looks: StackLooks | None = None
    kernel_looks: KernelLooks | None = None
    code_looks: CodeLooks | None = None
    sampled: str | None = None
    dataset_traits: dict[str, str] = field(default_factory=dict)
    tracing_s_per_sample: float | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ResourceUse:
    """What the monitors saw of all processes together. `metrics` are those without a field of their own, by id."""

    cpu_percent_of_allotted: float | None = None
    rss_bytes: int | None = None
    pss_bytes: int | None = None
    shm_peak_bytes: int | None = None
    disk_read_bytes_per_s: float | None = None
    gpus: tuple[GpuUse, ...] = ()
    monitor_cpu_share: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ProcessReadings(ResourceUse, LoaderInside, LoopTimes):
    """All that is read of one process that trains, with its workers: of a trial, or of one of its ranks."""


@dataclass(frozen=True, kw_only=True)
class RankReadings(ProcessReadings):
    """What was read of one rank of a trial with several.

    `rank_wait_share` is the share of step time that it waited for the batches of other ranks.
    """

    rank: int
    rank_wait_share: float | None = None


@dataclass(frozen=True, kw_only=True)
class PlannedTrial:
    """One configuration to be measured once. `role` says what for.

    `isolation` names what is left of it, of a trial with that role; `None` for all others. `side` is the version that a
    trial of `ab` measures; `None` for all others. `freed` names the stage that costs nothing, such as `decode` or
    `transform/Normalize`; `None` for all others.
    """

    id: str
    role: Role
    config: Config
    round: int
    isolation: IsolationName | None = None
    side: Side | None = None
    freed: str | None = None


@dataclass(frozen=True, kw_only=True)
class Trial(ProcessReadings, PlannedTrial):
    """One configuration measured once, in a process of its own.

    `time_slices` follow the steady state where a round was measured so; then `samples_per_s` is theirs. `consumer` is
    the kind that took its batches; `None` in runs that did not keep it. `rank` is that of a distributed training, and
    `None` outside of one; `host` is where it ran, and empty where that is this machine alone. `rank_wait_share` is the
    share of step time that it waited for the batches of other ranks.

    `ranks` are those of a trial with the axis `ranks`. Its own `samples_per_s`, `batches` and `samples` are then those
    of all ranks together, and the monitors' readings too. Everything else is that of its `slowest_rank`.
    """

    status: Status
    rank: int | None = None
    host: str = ""
    rank_wait_share: float | None = None
    consumer: str | None = None
    time_slices: TimeSlices | None = None
    reference_decode_before_s: float | None = None
    reference_decode_after_s: float | None = None
    started_at: str | None = None
    duration_s: float | None = None
    log: str | None = None
    failure: Failure | None = None
    ranks: tuple[RankReadings, ...] = ()
    slowest_rank: int | None = None

    @property
    def processes(self) -> int:
        """How many processes its rate is of: its ranks, or one."""
        return max(1, len(self.ranks))

    @property
    def of_one_process(self) -> ProcessReadings:
        """What was read of the process that its waits and stages belong to: itself, or its slowest rank."""
        return self.ranks[self.slowest_rank] if self.ranks and self.slowest_rank is not None else self

    @property
    def is_from_outside(self) -> bool:
        """Whether the process was attached to: nobody counted its batches."""
        return self.role == "profile" and self.status == "completed" and self.samples_per_s is None
