"""Readings from inside a loader: stages of a sample, workers, slow samples, waits, and distributions of times."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.records.words import Reasons


@dataclass(frozen=True)
class StageCost:
    """The cost of one sample in one stage: thread CPU time and wall time, without nested stages."""

    cpu_s: float | None
    wall_s: float | None


@dataclass(frozen=True, kw_only=True)
class WorkerStates:
    """How the workers' main threads spent the steady state. The first three shares add up to 1.

    `other_threads_cpu_share` is the CPU time of the workers' other threads over the same time, such as the thread that
    sends batches. `children_cpu_share` is that of child processes that they started and waited for. `mean_count` is the
    mean number of live workers: a worker ends early if its part of an iterable dataset does. `page_cache_hit_share` is
    the share of their reads (`read_bytes_per_s`) served from the page cache.

    `runnable_threads` is the mean number of threads that ran or waited in a run queue. `sending_cpu_share` and
    `sending_threads` are the parts of `other_threads_cpu_share` and `runnable_threads` that belong to threads that send
    batches. `system_share` is the share of their CPU time spent in the kernel. `blocked_on` says what they were blocked
    on when checked, as shares (`lock`, `own_threads`, `storage`, `page_fault`, `device`, `queue`, `running`).
    `swapped_bytes` is what was in swap. `allowed_cpus` is the smallest number of CPUs in a worker's affinity.
    `pinning_share` is the share of the time in which the pin-memory thread ran or was ready to run. `are_threads` is
    true if the workers are threads of the main process.
    """

    on_cpu_share: float
    run_queue_share: float
    blocked_share: float
    count: int | None = None
    mean_count: float | None = None
    other_threads_cpu_share: float | None = None
    children_cpu_share: float | None = None
    threads_per_worker: float | None = None
    page_cache_hit_share: float | None = None
    minor_faults_per_s: float | None = None
    major_faults_per_s: float | None = None
    read_bytes_per_s: float | None = None
    pss_bytes: int | None = None
    swapped_bytes: int | None = None
    runnable_threads: float | None = None
    sending_cpu_share: float | None = None
    sending_threads: float | None = None
    system_share: float | None = None
    blocked_on: dict[str, float] | None = None
    allowed_cpus: int | None = None
    pinning_share: float | None = None
    are_threads: bool = False
    not_measured: Reasons = field(default_factory=dict)

    @property
    def competing_threads(self) -> float:
        """The mean number of runnable threads without those that send batches; 0 if unknown."""
        return max(0.0, (self.runnable_threads or 0.0) - (self.sending_threads or 0.0))

    @property
    def library_share(self) -> float:
        """CPU time of other threads than those that send batches; 0 if unknown."""
        return max(0.0, (self.other_threads_cpu_share or 0.0) - (self.sending_cpu_share or 0.0))


@dataclass(frozen=True)
class Spread:
    """The distribution of a time over the batches or samples of one process. Percentiles are accurate to 5%."""

    count: int
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    max_s: float


@dataclass(frozen=True, kw_only=True)
class SlowSample:
    """One of the slowest samples. `index` is its index in the dataset, or a running number for an iterable dataset."""

    index: int | None
    wall_s: float
    stage: str
    worker: int
    path: str | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SampleTimes:
    """The workers' time per sample, the slowest samples, and the cost of outliers.

    `tail_share` is the maximum gain from fixing outliers, as a share of the workers' time. An outlier takes more than
    four times the median; its time beyond the median counts.
    """

    wall: Spread
    slowest: tuple[SlowSample, ...]
    tail_share: float


@dataclass(frozen=True, kw_only=True)
class LoopLine:
    """A line of the user's own code where a loop spends most of a part of its time, by `looks` stack samples.

    `share` is its share of that part, including the calls from it. `place` is the file's name and the line:
    `train.py:44`. `text` is the source line, empty if it cannot be read.
    """

    place: str
    text: str
    share: float
    looks: int


@dataclass(frozen=True, kw_only=True)
class Epochs:
    """Times outside the steady state.

    A boundary lasts from the last request of an epoch to the next epoch's first batch. In a trial, only the part of it
    that the consumer waits counts. `first_making_s` is the mean part in which a worker was making that batch.
    `sampler_s` is the mean time until the sampler's first indices. `between_s` is the mean time from the end of an
    epoch to the start of the next one. `between_line` is the line of the user's code with most of it.
    `workers_persist` is false if each epoch starts new workers.
    """

    begun: int
    boundary_s: float | None
    boundary_max_s: float | None
    first_making_s: float | None = None
    sampler_s: float | None = None
    between_s: float | None = None
    between_line: LoopLine | None = None
    workers_persist: bool | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class WaitParts:
    """What happened to the awaited batch while the consumer waited for it: seconds per batch that add up to the wait.

    `not_begun_s`: no worker had begun the batch. `making_s`: a worker was loading the batch. `order_s`: a later batch
    was ready and a worker idle, because batches are delivered in order. `transport_s`: the batch was loaded, but not
    yet received. `main_process_s`: the main process ran its sampler, or code around the loader. `batches` is the number
    of batches that the means are over. `ended_s` is not a part: it is the time in which some worker had no data
    left, and could not make the batch.
    """

    batches: int
    not_begun_s: float
    making_s: float
    order_s: float
    transport_s: float
    main_process_s: float
    ended_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class CodeAround:
    """Code around a loader, such as a generator that converts its batches, in seconds per batch.

    `place` is the outermost function, with file and line: `prepared (train.py:8)`.
    """

    place: str
    wall_s: float


@dataclass(frozen=True, kw_only=True)
class BusyThread:
    """The Python thread of the main process that used the most CPU time, other than the one that runs the loop.

    `name` is the outermost function of the user's own that it runs, with file and line, or else the thread's name.
    `cpu_share` is its CPU time as a share of elapsed time. `gil_wait_s` is how long another thread of the process
    waited for the GIL, on average; `None` if that was not measured.
    """

    name: str
    cpu_share: float
    gil_wait_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Taking:
    """Time that the main process spent in `next()`, in seconds per batch. `sampler_s` is the sampler's part.

    With code around the loader, the outermost `next()` is timed. With workers, `sampler_s` then includes that code.
    """

    wall_s: float
    cpu_s: float
    sampler_s: float
    around: CodeAround | None = None


@dataclass(frozen=True, kw_only=True)
class Reads:
    """A linear regression of the time that samples were blocked on the bytes they read.

    `bytes_share` is the share of the blocked time that grows with the bytes. The rest, the intercept, is latency.
    """

    samples: int
    bytes_per_sample: float
    blocked_s: float
    bytes_share: float | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MachineUse:
    """CPU use of all programs on the CPUs available to this one.

    `own_cpus` is this program's part of `busy_cpus`, and `processes` the number of its child processes. In distributed
    training, all `ranks` on this machine count as one program and share the CPUs. `throttled_share` is the share of the
    periods of a cgroup's CPU quota in which the quota was used up. `huge_faults_per_s` counts the page faults of all
    programs that were served with a huge page.

    `swapped_in_bytes_per_s` came back from swap for all programs. `swap_faults_per_s` counts the pages of it that a
    page fault asked for; the kernel reads others ahead. `available_bytes` is the memory that the machine had left.
    """

    cpus: int
    own_cpus: float
    busy_cpus: float
    throttled_share: float | None
    processes: int = 0
    ranks: int = 1
    huge_faults_per_s: float | None = None
    swapped_in_bytes_per_s: float | None = None
    swap_faults_per_s: float | None = None
    available_bytes: int | None = None
    not_measured: Reasons = field(default_factory=dict)

    @property
    def idle_cpus(self) -> float:
        """CPUs that no program used."""
        return max(0.0, self.cpus - self.busy_cpus)

    @property
    def others_cpus(self) -> float:
        """CPUs that other programs used, including the time stolen by a hypervisor."""
        return max(0.0, self.busy_cpus - self.own_cpus)


@dataclass(frozen=True, kw_only=True)
class StageLooks:
    """The share of the busy stack samples that were in one stage, and the part of these that ran on a CPU."""

    share: float
    running_share: float


@dataclass(frozen=True, kw_only=True)
class StackFrame:
    """A function and the line it was executing. `own` is true for the user's code, as opposed to Python or a package.

    `file` is a path relative to the working directory or to the folder of packages. `text` is the source line. It is
    empty outside the user's code, or if the line cannot be read.
    """

    file: str
    line: int
    function: str
    own: bool
    text: str = ""


@dataclass(frozen=True)
class CountedStack:
    """A stack and the seconds it represents. `frames` are indices into `CodeLooks.frames`, the outermost first.

    `seconds` is over all threads that load, and a multiple of the interval between two stack samples. `likely_stage` is
    the stage that the calls suggest, for a stack of the stage `sample`.
    """

    stage: str
    frames: tuple[int, ...]
    seconds: float
    likely_stage: str = ""


@dataclass(frozen=True)
class CodeLooks:
    """Stack samples of the threads that load. `looks` is their number.

    `stacks` are sorted by frequency, the most frequent first. They begin below torch's fetcher. Rare stacks are counted
    with their callers.
    """

    looks: int
    frames: tuple[StackFrame, ...]
    stacks: tuple[CountedStack, ...]


@dataclass(frozen=True, kw_only=True)
class StackLooks:
    """Stack samples of the threads that load, read from outside the process.

    `looks` is the number of stack samples of the workers' main threads. Without workers, it is the number in which the
    main process was in `next()`. `idle_share` is the share of them without work, or `None` without workers.
    `startup_share` is the share of the main process's time spent starting or ending workers. With workers, `waits`
    divides the main process's time in `next()`, as shares: `waiting` for a batch, `transport` (receiving one),
    `main_process` (the sampler).
    """

    looks: int
    idle_share: float | None
    startup_share: float
    waits: dict[str, float]
    stages: dict[str, StageLooks]
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class KernelLooks:
    """What Linux reports about the workers of an attached process, and about its wait for them.

    `waits` classifies the checks in which the main process waited for a batch, as shares. `making`: all workers had
    work. `order`: one worker was idle because its later batches were ready, and another was working. `transport`: no
    worker had work. `bytes_per_wait` is the number of bytes that workers read each time they were blocked.
    `bytes_share` is the share of the blocked time explained by bytes; the number of waits explains the rest.
    """

    waits: dict[str, float] | None
    bytes_per_wait: float | None
    bytes_share: float | None
    not_measured: Reasons = field(default_factory=dict)
