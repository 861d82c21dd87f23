"""What happened inside a loader: stages of a sample, workers, slow samples, waits, and how times are distributed."""

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

    `other_threads_cpu_share` is the CPU time of all their other threads over the same time, such as the thread that
    sends batches. `mean_count` is how many workers there were at a time: one ends early if its part of an iterable
    dataset does. `page_cache_hit_share` is the part of their reads (`read_bytes_per_s`) that came from memory.
    `runnable_threads` is how many of all threads ran or waited in a run queue at a time. `system_share` is the part of
    their CPU time in the kernel. `blocked_on` says what they were blocked on when checked (`lock`, `storage`, `device`,
    `queue`, `running`), as shares. `allowed_cpus` is the smallest number of CPUs that one worker may use.
    `pinning_share` is the part of the time in which the thread that pins memory ran, or was ready to.
    `are_threads`: the workers are threads of the main process.
    """

    on_cpu_share: float
    run_queue_share: float
    blocked_share: float
    count: int | None = None
    mean_count: float | None = None
    other_threads_cpu_share: float | None = None
    threads_per_worker: float | None = None
    page_cache_hit_share: float | None = None
    minor_faults_per_s: float | None = None
    major_faults_per_s: float | None = None
    read_bytes_per_s: float | None = None
    pss_bytes: int | None = None
    runnable_threads: float | None = None
    system_share: float | None = None
    blocked_on: dict[str, float] | None = None
    allowed_cpus: int | None = None
    pinning_share: float | None = None
    are_threads: bool = False
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class Spread:
    """How one time is distributed over the batches or samples of one process. Percentiles are accurate to 5%."""

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

    `tail_share` is the maximum gain from fixing outliers, as a share of the workers' time. Outliers take more than
    four times the median; their time beyond the median counts.
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


@dataclass(frozen=True, kw_only=True)
class WaitParts:
    """Where the awaited batch was while the consumer waited for it: seconds per batch, which add up to the wait.

    `not_begun_s`: no worker had begun it. `making_s`: its worker was at it. `order_s`: a later batch lay ready and a
    worker idle, for batches are handed out in order. `transport_s`: it was made and not yet there.
    `main_process_s`: the main process was at its sampler, or at code around the loader. `batches` is what they are the
    means of.
    """

    batches: int
    not_begun_s: float
    making_s: float
    order_s: float
    transport_s: float
    main_process_s: float


@dataclass(frozen=True, kw_only=True)
class CodeAround:
    """Code around a loader, such as a generator that converts its batches, in seconds per batch.

    `place` is its outermost function, with file and line: `prepared (train.py:8)`.
    """

    place: str
    wall_s: float


@dataclass(frozen=True, kw_only=True)
class Taking:
    """What the main process did inside `next()`, in seconds per batch. `sampler_s` of it went to the sampler.

    With code around the loader, that is the outermost `next()`. With workers, `sampler_s` includes this code.
    """

    wall_s: float
    cpu_s: float
    sampler_s: float
    around: CodeAround | None = None


@dataclass(frozen=True, kw_only=True)
class Reads:
    """Time that samples were blocked, against the bytes they read, by linear regression.

    `bytes_share` is the part of that time that grows with the bytes; the rest, the intercept, is latency.
    """

    samples: int
    bytes_per_sample: float
    blocked_s: float
    bytes_share: float | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MachineUse:
    """All programs together, on the CPUs that this one may use. `own_cpus` of `busy_cpus` are this program's.

    It has `processes` below its main one. Of a distributed training, all `ranks` on this machine are one program, and
    the CPUs are shared among them. `throttled_share` is the part of the periods of a control group's quota in
    which it was used up. `huge_faults_per_s` are page faults that were given a huge page, of all programs.
    """

    cpus: int
    own_cpus: float
    busy_cpus: float
    throttled_share: float | None
    processes: int = 0
    ranks: int = 1
    huge_faults_per_s: float | None = None
    not_measured: Reasons = field(default_factory=dict)

    @property
    def idle_cpus(self) -> float:
        """CPUs that nobody used."""
        return max(0.0, self.cpus - self.busy_cpus)

    @property
    def others_cpus(self) -> float:
        """CPUs that other programs used, and what a hypervisor took away."""
        return max(0.0, self.busy_cpus - self.own_cpus)


@dataclass(frozen=True, kw_only=True)
class StageLooks:
    """The share of the stacks at work that were in a stage, and the part of these in which it ran on a CPU."""

    share: float
    running_share: float


@dataclass(frozen=True, kw_only=True)
class StackFrame:
    """A function and the line that it was at. `own`: it belongs to the user's code, not to Python or a package.

    `file` is a path relative to the working directory or to the folder of packages. `text` is the line itself; empty
    for code that is not the user's, and where it cannot be read.
    """

    file: str
    line: int
    function: str
    own: bool
    text: str = ""


@dataclass(frozen=True)
class CountedStack:
    """A stack and the seconds it represents: the numbers of its frames in `CodeLooks.frames`, the outermost first.

    The seconds are those of all threads that load, and a multiple of the interval between two stack samples.
    """

    stage: str
    frames: tuple[int, ...]
    seconds: float


@dataclass(frozen=True)
class CodeLooks:
    """How often threads that were loading were sampled, and their stacks, the most frequent first.

    Stacks begin below torch's fetcher of samples. Rare ones are counted with their caller's.
    """

    looks: int
    frames: tuple[StackFrame, ...]
    stacks: tuple[CountedStack, ...]


@dataclass(frozen=True, kw_only=True)
class StackLooks:
    """Stacks of the threads that load, read from outside the process.

    `looks` counts those of the workers' main threads, or those of the main process in `next()` if there are no workers.
    `idle_share` of them had no work; `None` without workers. `startup_share` is the part of the main process's time in
    which it started or ended workers. `waits` divides its time in `next()` where there are workers, as shares:
    `waiting` for a batch, `transport` (receiving one), `main_process` (the sampler).
    """

    looks: int
    idle_share: float | None
    startup_share: float
    waits: dict[str, float]
    stages: dict[str, StageLooks]
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class KernelLooks:
    """What Linux said of the workers of a process that was attached to, and of its wait for them.

    `waits` divides the looks at which the main process waited for a batch, as shares. `making`: all workers had work.
    `order`: one had none, because its later batches were ready, and another was at work. `transport`: none had work.
    `bytes_per_wait` are the bytes that workers read for each time that they were blocked. `bytes_share` is the
    part of the blocked time that bytes explain; the rest is explained by the number of times.
    """

    waits: dict[str, float] | None
    bytes_per_wait: float | None
    bytes_share: float | None
    not_measured: Reasons = field(default_factory=dict)
