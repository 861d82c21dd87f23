"""What is concluded from what was measured: configurations, the best, the verdict, and what to change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from loaderbench.records.comparison import Comparison, GateResult
from loaderbench.records.verification import PixelChange
from loaderbench.records.words import (
    About,
    Basis,
    Bound,
    Confidence,
    Config,
    CostName,
    Interval,
    IsolationName,
    Limit,
    Reasons,
    Stage,
    Standing,
)


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """One point of the sweep over all its rounds, put together as `records/metrics.py` says.

    `metrics` are those of them that have no field here, by id.
    """

    config: Config
    samples_per_s: Interval | None
    data_wait_share: Interval | None
    trials: tuple[str, ...]
    rank: int | None
    tied_with_best: bool
    time_to_first_batch_s: Interval | None = None
    cpu_percent_of_allotted: float | None = None
    rss_bytes: int | None = None
    pss_bytes: int | None = None
    shm_peak_bytes: int | None = None
    gpu_utilization_percent: float | None = None
    gpu_memory_used_bytes: int | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Best:
    """The cheapest of the configurations tied with the fastest. `gain` is a ratio over the baseline."""

    config: Config
    samples_per_s: Interval
    data_wait_share: Interval | None
    ties: tuple[Config, ...]
    why_this_one: str
    gain: Interval | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The configuration the user has today."""

    config: Config
    samples_per_s: Interval | None
    data_wait_share: Interval | None
    why_this_one: str
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """Samples/s with loading made free. `headspace` is the share of time per batch that could be won (0 to 1).

    `samples_per_s_interval` is there where it was measured in several rounds, and not given or of one process.
    """

    samples_per_s: float
    headspace: float
    basis: str
    samples_per_s_interval: Interval | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """One line of evidence; as text, `label: figures`. Without a `label`, the figures are the whole line."""

    about: About
    label: str
    figures: str

    def __str__(self) -> str:
        return f"{self.label}: {self.figures}" if self.label else self.figures


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The one finding that explains the run; as text, its line: `INPUT-BOUND (high confidence): CPUs saturated; ...`.

    `headline` is the cause in a clause, `evidence` lines of text, the cause's first. `evidence_parts` are the same
    lines, each with its label and what it is about; runs of earlier versions have none. `against` is the evidence for
    another cause. `work` is the stage by the user's own name where they have one. `read_inside` is the stage that files
    are read in, where reading is blocked and is not timed apart from it. `confidence_reasons` say why the confidence is
    not high. `rank` is the one of a distributed training that holds back the others; `None` where none does.
    """

    bound: Bound
    stage: Stage | None
    limit: Limit | None
    headline: str
    evidence: tuple[str, ...]
    confidence: Confidence
    evidence_parts: tuple[Evidence, ...] = ()
    work: str | None = None
    read_inside: Stage | None = None
    against: tuple[str, ...] = ()
    confidence_reasons: tuple[str, ...] = ()
    rank: int | None = None
    not_measured: Reasons = field(default_factory=dict)

    def __str__(self) -> str:
        bound = "UNKNOWN" if self.bound == "unknown" else f"{self.bound.upper()}-BOUND"
        return f"{bound} ({self.confidence} confidence): {self.headline}"


@dataclass(frozen=True, kw_only=True)
class Rank:
    """A rank of a distributed training as it saw itself.

    `data_wait_share` is its own wait for data. `rank_wait_share` is its wait for the batches of other ranks, which is a
    part of its step. `device` is the GPU that it used.
    """

    rank: int
    host: str
    device: str | None
    samples_per_s: float | None
    data_wait_share: float | None
    rank_wait_share: float | None
    verdict: Verdict
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class HostUse:
    """A machine of a distributed training, or all of them, without a name: what its `ranks` load together.

    `read_bytes_per_s` is what their processes asked the system for, with what came from memory.
    """

    host: str
    ranks: int
    samples_per_s: float | None
    read_bytes_per_s: float | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class Gain:
    """A ratio of `metric`, changed over unchanged: 1.25 is a quarter more.

    `is_floor`: the demand of the consumer capped the changed rate, so the gain is at least this.
    """

    metric: str
    est: float
    lo: float | None
    hi: float | None
    is_floor: bool = False


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """One change, what it gave, what it costs. `reason` says why it is not `open`.

    `against` is the configuration that a tried remedy was measured on; `None` for all others, whose gain is over the
    baseline. `before` and `after` are the two rates of a measured gain, in samples/s. `meets_target`: whether all of
    the interval of `after` meets the demand of the consumer; `None` if it has none. `pixels` says how much the change
    alters the samples' pixels; `None` if it is not known to alter any.
    """

    id: str
    title: str
    change: Config
    basis: Basis | None
    gain: Gain | None
    status: Standing
    costs: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    caveat: str | None = None
    snippet: str | None = None
    snippet_yaml: str | None = None
    reason: str | None = None
    against: Config | None = None
    before: Interval | None = None
    after: Interval | None = None
    meets_target: bool | None = None
    pixels: PixelChange | None = None

    @property
    def changes_pixels(self) -> str | None:
        """`changes pixels, PSNR 34 dB`, as a terminal prints it; `None` if it is not known to change any."""
        return None if self.pixels is None else f"changes pixels, {self.pixels.psnr_in_words}"


@dataclass(frozen=True)
class Overhead:
    """What measuring cost: the recorder per batch, tracing per sample, and the monitors as a share of one core."""

    per_batch_s: float | None
    share_of_wall: float | None
    monitor_cpu_share: float | None
    tracing_per_sample_s: float | None = None


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


@dataclass(frozen=True, kw_only=True)
class IsolationRun:
    """One configuration with parts of it taken away. `time_s` is per batch or per sample, as `Isolation.per` says.

    `trials` are the ids of its trials; `end_to_end`, with nothing taken away, has those of the sweep.
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


@dataclass(frozen=True, kw_only=True)
class Hotspot:
    """A line of the user's own code, and the share of loading time in which a thread was at it.

    The share includes what the line calls. `file` is the name of the file, and `path` its path where that is longer.
    `stage` is the one with most of this time. `text` is the line itself, empty where it cannot be read. `below` is the
    library's function that it called most of the time, empty where the line itself ran.
    """

    function: str
    file: str
    line: int
    stage: str
    share: float
    text: str = ""
    below: str = ""
    path: str = ""


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
class Conclusions:
    """All that this version's rules say of a run. They can be drawn again from what was measured, at any time.

    `warnings` are reasons to distrust the run, `remarks` what is good to know of its figures. `hotspots` are lines of
    code of the verdict's configuration, those with the largest share of loading time first. `ranks` are those of a
    distributed training, whose `verdict` is that of the whole. `hosts` are its machines and `all_hosts` their sums,
    where there are several. `comparison` is that of two versions that were measured in turns, and `gates` are what it
    was held to. `prediction` would be that of configurations that were not measured; this version predicts none.
    `bottlenecks` are stages of the verdict's configuration, the largest gain first; why others are not among them,
    `not_measured` says under `bottlenecks.decode`.
    """

    configurations: tuple[Configuration, ...]
    best: Best | None
    baseline: Baseline
    ceiling: Ceiling | None
    verdict: Verdict
    recommendations: tuple[Recommendation, ...]
    overhead: Overhead | None
    noise: Noise
    warnings: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    epoch_costs: tuple[EpochCost, ...] = ()
    isolation: Isolation | None = None
    contention: tuple[Contention, ...] = ()
    gpu_memory: GpuMemory | None = None
    hotspots: tuple[Hotspot, ...] = ()
    ranks: tuple[Rank, ...] = ()
    comparison: Comparison | None = None
    gates: tuple[GateResult, ...] = ()
    hosts: tuple[HostUse, ...] = ()
    all_hosts: HostUse | None = None
    prediction: None = None
    bottlenecks: tuple[Bottleneck, ...] = ()
    not_measured: Reasons = field(default_factory=dict)
