"""What happened inside a loader: stages of a sample, the workers, slow samples, and how times are distributed."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.records.words import Reasons


@dataclass(frozen=True)
class StageCost:
    """What one sample costs in one stage: thread CPU time and wall time, without the stages nested in it."""

    cpu_s: float | None
    wall_s: float | None


@dataclass(frozen=True, kw_only=True)
class WorkerStates:
    """Where the time of the workers' main threads went over the steady state; the first three shares add up to 1.

    `other_threads_cpu_share` is CPU time of all their other threads (the one that sends batches among them) over the
    same time. `page_cache_hit_share` is the part of what they read that no disk had to give. `runnable_threads` is how
    many threads, of all of them, ran or stood in a run queue at a time. `system_share` is the part of their CPU time
    that the kernel took. `blocked_on` says what they stood at when they were looked at (`lock`, `storage`, `device`,
    `queue`, `running`), as shares. `allowed_cpus` is the smallest number of CPUs that one of them may use.
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
    runnable_threads: float | None = None
    system_share: float | None = None
    blocked_on: dict[str, float] | None = None
    allowed_cpus: int | None = None
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
