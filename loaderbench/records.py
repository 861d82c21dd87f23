"""What crosses a border: frozen records with units in their field names. Standard library only.

`RunRecord` is `run.json`. A value that could not be measured is `None`, and `not_measured` of the same record
says why, by field name. An `Interval` is a 95 % interval over rounds (processes), never over the batches of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

SCHEMA_VERSION = 1

Scalar = bool | int | float | str | None
Config = dict[str, Scalar]
"""A value for every axis of the sweep."""

Reasons = dict[str, str]
"""Field name to the reason why it holds `None`."""

Status = Literal["completed", "failed", "timed_out", "unavailable"]
Bound = Literal["input", "compute", "transfer", "unknown"]
Confidence = Literal["high", "medium", "low"]
Basis = Literal["measured", "predicted", "heuristic"]
Kind = Literal["sweep", "profile"]
Standing = Literal["open", "already_ok", "not_checked"]
Outcome = Literal["improved", "regressed", "within noise", "inconclusive", "incomparable"]


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval; `lo` and `hi` are `None` when one round alone was measured."""

    est: float
    lo: float | None
    hi: float | None


@dataclass(frozen=True)
class Failure:
    """Why a trial gave no measurement: a kind of the catalogue, the message as it came, and what to do."""

    kind: str
    message: str
    hint: str


@dataclass(frozen=True)
class StageCost:
    """What one sample costs in one stage: thread CPU time and wall time, without the stages nested in it."""

    cpu_s: float | None
    wall_s: float | None


@dataclass(frozen=True, kw_only=True)
class WorkerStates:
    """Where the time of the workers' main threads went over the steady state; the first three shares add up to 1.

    `other_threads_cpu_share` is CPU time of all their other threads (the one that sends batches among them) over the
    same time. `page_cache_hit_share` is the part of what they read that no disk had to give.
    """

    on_cpu_share: float
    run_queue_share: float
    blocked_share: float
    count: int | None = None
    other_threads_cpu_share: float | None = None
    threads_per_worker: float | None = None
    page_cache_hit_share: float | None = None
    minor_faults_per_s: float | None = None
    major_faults_per_s: float | None = None
    pss_bytes: int | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class Spread:
    """How one time is distributed over the batches or samples of one process; quantiles are right within 5 %."""

    count: int
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    max_s: float


@dataclass(frozen=True, kw_only=True)
class SlowSample:
    """One of the slowest samples. `index` is the dataset's, or a running number of an iterable one."""

    index: int | None
    wall_s: float
    stage: str
    worker: int
    path: str | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SampleTimes:
    """How long the workers took for a sample, which were the slowest, and what these cost.

    `tail_share` is the part of the workers' time that samples slower than four times the median took beyond that
    median: what would be won if they were like the others.
    """

    wall: Spread
    slowest: tuple[SlowSample, ...]
    tail_share: float


@dataclass(frozen=True, kw_only=True)
class Epochs:
    """What lies outside the steady state. A boundary reaches from asking for more to the next epoch's first batch."""

    begun: int
    boundary_s: float | None
    boundary_max_s: float | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class GpuUse:
    """One device during one trial. `utilization_percent` says that a kernel was resident, not that it was busy."""

    index: int
    uuid: str
    utilization_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One configuration measured once, in a process of its own.

    Everything but `time_to_first_batch_s` and the reference decodes belongs to the steady state. `epoch_ends` lie
    within it (a loader that is not ours to make endless); `ended_early`: the loader ran dry before it was long enough.
    `samples_per_epoch` is the dataset's length where it has one. `stages` are costs per sample that add up;
    `stage_parts` are what they are made of, by name (`transform/RandomResizedCrop`). `step` is the time from a batch to
    asking for the next; `step_stages` are the parts of it that were marked, per batch. `sampled` says what was thinned
    out to bound memory.
    """

    id: str
    config: Config
    round: int
    status: Status
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
    stages: dict[str, StageCost] | None = None
    stage_parts: dict[str, StageCost] | None = None
    workers: WorkerStates | None = None
    sample_times: SampleTimes | None = None
    data_wait: Spread | None = None
    step: Spread | None = None
    step_stages: dict[str, StageCost] | None = None
    epochs: Epochs | None = None
    sampled: str | None = None
    cpu_percent_of_allotted: float | None = None
    rss_bytes: int | None = None
    pss_bytes: int | None = None
    shm_peak_bytes: int | None = None
    disk_read_bytes_per_s: float | None = None
    gpus: tuple[GpuUse, ...] = ()
    reference_decode_before_s: float | None = None
    reference_decode_after_s: float | None = None
    recorder_s_per_batch: float | None = None
    tracing_s_per_sample: float | None = None
    monitor_cpu_share: float | None = None
    started_at: str | None = None
    duration_s: float | None = None
    log: str | None = None
    failure: Failure | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class TimelinePoint:
    """One reading of a monitor, `t_s` seconds after its trial began."""

    trial: str
    t_s: float
    metric: str
    value: float


@dataclass(frozen=True)
class Gpu:
    """One device as CUDA numbers it; NVML is asked for the same UUID."""

    index: int
    uuid: str
    name: str
    memory_total_bytes: int


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The machine and the versions a run was made on. `cpus_allotted` is min(affinity, cgroup quota)."""

    cpus_allotted: float
    cpus_online: int
    cpu_model: str | None
    memory_total_bytes: int
    memory_limit_bytes: int | None
    shm_total_bytes: int | None
    open_files_limit: int | None
    platform: str
    python: str
    versions: dict[str, str]
    start_method: str
    gpus: tuple[Gpu, ...] = ()
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetSummary:
    """What the trials read. `total_files` is `None` where the folder was not listed to its end."""

    description: str
    files: int | None = None
    classes: int | None = None
    total_files: int | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class PlanSummary:
    """What was meant to be measured. `collapsed` names each axis that lost values, and why."""

    axes: dict[str, list[Scalar]]
    configurations: int
    rounds: int
    trials: int
    collapsed: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """One point of the sweep over all its rounds. Memory is the largest, other readings the mean over rounds."""

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
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Best:
    """The cheapest configuration of those that cannot be told from the fastest. `gain` is a ratio over the baseline."""

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
    """Samples/s with loading made free. `headspace` is the share of time per batch that could be won (0 to 1)."""

    samples_per_s: float
    headspace: float
    basis: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The one finding that explains the run."""

    bound: Bound
    stage: str | None
    limit: str | None
    headline: str
    evidence: tuple[str, ...]
    confidence: Confidence
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class Gain:
    """A ratio of `metric`, changed over unchanged: 1.25 is a quarter more."""

    metric: str
    est: float
    lo: float | None
    hi: float | None


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """One change, what it gave, what it costs. `reason` says why it is not `open`."""

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


@dataclass(frozen=True)
class Overhead:
    """What measuring cost: the recorder per batch, tracing per sample, and the monitors as a share of one core."""

    per_batch_s: float | None
    share_of_wall: float | None
    monitor_cpu_share: float | None
    tracing_per_sample_s: float | None = None


@dataclass(frozen=True)
class Noise:
    """How still the machine was.

    `reference_decode_spread` is the slowest over the fastest of one fixed piece of work timed beside every trial.
    `aa_difference` is the ratio of a configuration to itself, measured as if it were two. `cpu_percent_before` is what
    other programs used of all CPUs before the first trial.
    """

    reference_decode_spread: float | None
    aa_difference: Interval | None
    aa_trials: tuple[Trial, ...] = ()
    cpu_percent_before: float | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """`run.json`: everything a run measured and concluded. The page is a drawing of it.

    `consumer` is the kind that `auto` became; `loop` is a user's own. `kind`: a sweep of a suite, or a profile of a
    user's own loop.
    """

    name: str
    suite: dict[str, Any]
    environment: Environment
    dataset: DatasetSummary
    plan: PlanSummary
    started_at: str
    finished_at: str
    complete: bool
    trials: tuple[Trial, ...]
    configurations: tuple[Configuration, ...]
    best: Best | None
    baseline: Baseline | None
    ceiling: Ceiling | None
    verdict: Verdict
    recommendations: tuple[Recommendation, ...]
    prediction: dict[str, Any] | None
    overhead: Overhead | None
    noise: Noise
    warnings: tuple[str, ...]
    notes: tuple[str, ...] = ()
    consumer: str = "emulated"
    kind: Kind = "sweep"
    not_measured: Reasons = field(default_factory=dict)
    loaderbench_version: str = ""
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, kw_only=True)
class MetricChange:
    """One metric of one configuration in two runs.

    `change` is the ratio after/before for `samples_per_s`, and the difference after - before for `data_wait_share`;
    where it has an estimate without an interval, `not_measured` says why under its name.
    """

    config: Config
    metric: str
    before: Interval | None
    after: Interval | None
    change: Interval | None
    outcome: Outcome
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What changed from one run to another. `reasons` say why there is no clear outcome, and what casts doubt on one.

    The outcome and the headline are those of `samples_per_s` in the best configuration that both runs measured.
    """

    outcome: Outcome
    headline: str
    metrics: tuple[MetricChange, ...]
    reasons: tuple[str, ...]


def to_dict(record: Any) -> dict[str, Any]:
    """Plain dicts, tuples and scalars of a record, fit for `json.dumps(..., allow_nan=False)`."""
    return asdict(record)


def config_label(config: Mapping[str, Scalar]) -> str:
    """`batch_size=32 num_workers=2`: how a configuration is written wherever it stands in a line."""
    return " ".join(f"{axis}={format_scalar(value)}" for axis, value in config.items())


def varying(config: Config, axes: Mapping[str, Sequence[object]]) -> Config:
    """A configuration without the axes that have one value: what tells it from the others."""
    return {axis: value for axis, value in config.items() if len(axes.get(axis, ())) > 1}


def format_scalar(value: Scalar) -> str:
    """A value as YAML writes it, so that what is read can be pasted back."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
