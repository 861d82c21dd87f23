"""One trial: readings of the loop, the loader and the machine while one configuration is measured once."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.records.inside import (
    BusyThread,
    CodeLooks,
    Epochs,
    KernelLooks,
    LoopLine,
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
    """Why a trial failed: its kind (docs/reference/failures.md), the original message, and a hint.

    `by_oom_killer` says whether the kernel's OOM killer ended a killed process, and is `None` if there is no counter
    for it. `limit_bytes` is this machine's capacity of the memory that ran out; `needed_bytes` is the size of the
    batches in flight. Both are `None` if unknown, or if nothing ran out. `rank` is the failed rank, if there are
    several.
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
    """GB/s (10**9 bytes) of copies to a GPU in buffers of one batch's size, each completed before the next."""

    index: int
    bytes_per_sample: float
    pinned_gb_per_s: Interval
    pageable_gb_per_s: Interval


SW_POWER_CAP = "power cap (SW power cap)"
"""The key in `throttled` for a GPU at its power limit."""


@dataclass(frozen=True, kw_only=True)
class GpuPerformance:
    """How busy the parts of a GPU were over the steady state, from NVML's performance metrics (GPM).

    `sm_active_percent` is the share of active SMs. `tensor_active_percent` is the share of time with tensor cores
    active. `dram_active_percent` is the share of the memory bandwidth in use. PCIe traffic is received (`rx`) or sent
    (`tx`) by the GPU. `nvjpg_percent` is the mean over the JPEG engines. Metrics that NVML does not report are `None`.
    """

    sm_active_percent: float | None = None
    tensor_active_percent: float | None = None
    dram_active_percent: float | None = None
    pcie_rx_bytes_per_s: float | None = None
    pcie_tx_bytes_per_s: float | None = None
    nvjpg_percent: float | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class GpuUse:
    """One device during the steady state of one trial.

    `utilization_percent` is the time with a kernel resident, not how busy the GPU was. `throttled` has, for each
    throttle reason, the share of the readings in which it was active. `pcie_generation` and `pcie_width` are the
    highest readings, because an idle link runs slower. Clocks and power are means. `memory_used_bytes` covers the
    device and all programs. The peaks are from PyTorch's allocator in this process, since its start. `copy_speed` is
    measured by isolation runs that replay batches from the host. `performance` needs Hopper or later.
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
    """Batches and samples of a trial's time slices, during which the other trials of its round were stopped.

    `seconds` is the total length of the slices of this trial.
    """

    count: int
    batches: int
    samples: int
    seconds: float

    @property
    def samples_per_s(self) -> float:
        """Samples per second of the time slices."""
        return self.samples / self.seconds


@dataclass(frozen=True, kw_only=True)
class LoopTimes:
    """The rate of batches, and the consumer's wait for them.

    All fields except `time_to_first_batch_s` and `epochs` describe the steady state. `epoch_ends` counts the epochs
    that ended in it, for a loader that cannot be made endless. The rate and `data_wait_share` of a trial include the
    boundaries between these epochs; `data_wait` never does. `ended_early` is true if the loader ran out of data before
    the planned time. `samples_per_epoch` are those that its sampler draws. `step` is the time from receiving a
    batch to the request for the next. `step_stages` are the marked parts of a step, per batch. `step_line` is the line
    of the user's code with most of the time outside of these parts, or in calls of a model without gradients.
    `consumer_note` describes anything unusual. `computed_in` is the data type of a training step of `kind: model`, such
    as `bfloat16` or `tf32`.
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
    step_line: LoopLine | None = None
    epochs: Epochs | None = None
    recorder_s_per_batch: float | None = None
    consumer_note: str | None = None
    computed_in: str | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LoaderInside:
    """Readings from inside the loader.

    `stages` are costs per sample that add up, and `stage_parts` are their parts, by name
    (`transform/RandomResizedCrop`). `main_process` is the process that receives the batches. `stack_looks` and
    `kernel_looks` are available for an attached process, `code_looks` also for profiles. `sampled` says what was
    sampled instead of recorded completely, to bound memory. `dataset_traits` are properties of the dataset that decide
    which fixes apply.
    """

    stages: dict[str, StageCost] | None = None
    stage_parts: dict[str, StageCost] | None = None
    workers: WorkerStates | None = None
    main_process: WorkerStates | None = None
    busy_thread: BusyThread | None = None
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
    """Readings of the monitors over all processes. `metrics` holds the metrics without their own field, by id."""

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
    """All readings of one training process with its workers, from a trial or one of its ranks."""


@dataclass(frozen=True, kw_only=True)
class RankReadings(ProcessReadings):
    """Readings of one rank of a trial with several ranks.

    `rank_wait_share` is the share of step time spent waiting for the batches of other ranks.
    """

    rank: int
    rank_wait_share: float | None = None


@dataclass(frozen=True, kw_only=True)
class PlannedTrial:
    """One planned measurement of a configuration. `role` is its purpose.

    `isolation` names the isolation run of a trial with that role. `side` is the version that a trial of `ab` measures.
    `freed` names the stage that is free, such as `decode` or `transform/Normalize`. Each is `None` for all other
    trials.
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
    """One measurement of a configuration, in a separate process.

    If the round was measured in time slices, `time_slices` follow the steady state, and `samples_per_s` is their rate.
    `consumer` is the kind of consumer, or `None` in runs that did not save it. In distributed training, `rank` is the
    rank, and `host` the machine it ran on; `host` is empty if there is just this machine. `rank_wait_share` is the
    share of step time spent waiting for the batches of other ranks.

    `ranks` are the ranks of a trial with the axis `ranks`. In such a trial, `samples_per_s`, `batches`, `samples` and
    the monitors' readings cover all ranks. All other fields are those of its `slowest_rank`.
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
        """The number of training processes that its rate covers: its ranks, or one."""
        return max(1, len(self.ranks))

    @property
    def of_one_process(self) -> ProcessReadings:
        """The readings that its waits and stages belong to: of the trial itself, or of its slowest rank."""
        return self.ranks[self.slowest_rank] if self.ranks and self.slowest_rank is not None else self

    @property
    def is_from_outside(self) -> bool:
        """Whether the process was attached to. Its batches were not counted."""
        return self.role == "profile" and self.status == "completed" and self.samples_per_s is None
