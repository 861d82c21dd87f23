"""A whole run: machine, plan, what was measured and what is concluded from it. `RunRecord` is `run.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loaderbench.records.causes import EpochCost
from loaderbench.records.ladder import Contention, Ladder
from loaderbench.records.trial import Trial
from loaderbench.records.verification import Verification
from loaderbench.records.words import (
    SCHEMA_VERSION,
    Basis,
    Bound,
    Confidence,
    Config,
    Interval,
    Kind,
    Reasons,
    Scalar,
    Standing,
)


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
    bad_files: int | None = None
    bad_images: tuple[str, ...] = ()
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
    """Samples/s with loading made free. `headspace` is the share of time per batch that could be won (0 to 1).

    `samples_per_s_interval` is there where it was measured in several rounds, and not given or of one process.
    """

    samples_per_s: float
    headspace: float
    basis: str
    samples_per_s_interval: Interval | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The one finding that explains the run. `against` is what speaks for another cause."""

    bound: Bound
    stage: str | None
    limit: str | None
    headline: str
    evidence: tuple[str, ...]
    confidence: Confidence
    against: tuple[str, ...] = ()
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
    user's own loop. `suite_file` is the suite as it was named to the command, and `overrides` what its flags set in it,
    such as `measure.rounds`.
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
    epoch_costs: tuple[EpochCost, ...] = ()
    ladder: Ladder | None = None
    contention: tuple[Contention, ...] = ()
    verification: Verification | None = None
    not_measured: Reasons = field(default_factory=dict)
    loaderbench_version: str = ""
    suite_file: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION
