"""The input of a diagnosis: a configuration's trials as comparable numbers, with `None` for unknown values."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.diagnosis.thresholds import MOST, SHORT_BATCH_S, SPARE_CPUS
from loaderbench.records import CodeAround, CopyBandwidth, Hotspot, LoopLine, WaitParts, WorkerStates

Seconds = dict[str, float]
MOST_IDLE = 0.9  # upper bound, which keeps the divisor from getting too small


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Measurements of one configuration. Times are seconds per sample of one worker; shares are of a process's time.

    `from_outside` is set for an attached process: its rate is unknown, and times are shares of the working time.

    Stages and waits: `cpu_s` and `wall_s` are by stage. `loads` are the states of the workers, or of the main process
    if there are none. `idle_share` is the workers' time without work; `ended_share` is the share of all workers' time
    after some have ended, as workers of an iterable dataset can. `workers_persist`: workers are kept across epochs.
    `sample_is_mostly` is the stage of most library calls in the stage `sample`, by stack samples. `hot_line` is the
    innermost line of the user's own code with at least half of the loading time, including its calls.

    Memory: `swap_faults_per_s` are page faults of all programs that read from swap, and `swapped_in_bytes_per_s` what
    came back. `available_bytes` is what this machine has left, `memory_limit_bytes` the limit of a container, if any.

    CPUs: `cpus` are available to this program, which uses `own_cpus`; `idle_cpus` are used by no program. `processes`
    counts the children of the main process. In distributed training, `ranks` processes with as many workers each share
    these CPUs, and their use is counted together.

    Epochs: `startup_s` are lost before the first batch of each, beyond a usual wait, `startup_share` of the total time.
    During `first_making_s`, a worker makes that batch, as it would in the middle of an epoch. `sampler_start_s` is what
    the sampler takes until its first indices. `between_share` is the share of all time that passes between epochs, with
    `between_s` each, mostly in `between_line` of the user's code.

    Steps: the rest of a step, outside of its stages, takes `rest_share` of step time, mostly in `step_line` of the
    user's code.

    Others to wait for: `busy_thread` is a Python thread of the main process, other than the loop's, that uses a CPU for
    most of the time while threads wait long for the GIL. `fed_by` is a call of Python's multiprocessing in which the
    loading processes spend most of their time, such as `Queue.get`: they wait for another process.

    Rates: `samples_per_s` is the rate of one process, or the sum over the `ranks_of_rate` ranks of a trial. In a trial
    with ranks, `slowest_rank_samples_per_s` is the rate of the rank whose stages and waits these are.

    Other worker settings: `fewer_are_no_faster` although they leave no CPU idle, `fewer_are_faster`,
    `one_thread_is_no_faster` in each worker, `one_thread_is_faster`, `workers_are_slower` than the main process alone,
    `more_are_no_faster`, `more_are_faster`.
    """

    workers: int
    cpus: float
    cpus_online: int = 1
    is_loader: bool = True
    processes: int = 0
    ranks: int = 1
    ranks_of_rate: int = 1
    wait_share: float = 1.0
    samples_per_s: float = 0.0
    slowest_rank_samples_per_s: float | None = None
    batch_samples: float | None = 1.0
    cpu_s: Seconds = field(default_factory=dict)
    wall_s: Seconds = field(default_factory=dict)
    sample_is_mostly: str = ""
    loads: WorkerStates | None = None
    main: WorkerStates | None = None
    idle_share: float | None = None
    ended_share: float = 0.0
    own_cpus: float | None = None
    idle_cpus: float | None = None
    others_cpus: float | None = None
    throttled_share: float | None = None
    huge_faults_per_s: float = 0.0
    swap_faults_per_s: float | None = None
    swapped_in_bytes_per_s: float | None = None
    available_bytes: float | None = None
    memory_limit_bytes: int | None = None
    parts: WaitParts | None = None
    next_s: float | None = None
    next_cpu_s: float | None = None
    sampler_s: float = 0.0
    around: CodeAround | None = None
    busy_thread: str = ""
    fed_by: str = ""
    hot_line: Hotspot | None = None
    bytes_per_sample: float | None = None
    bytes_share: float | None = None
    bytes_per_wait: float | None = None
    tail_share: float = 0.0
    startup_share: float = 0.0
    startup_s: float | None = None
    first_making_s: float = 0.0
    sampler_start_s: float = 0.0
    between_share: float = 0.0
    between_s: float = 0.0
    between_line: LoopLine | None = None
    rest_share: float = 0.0
    step_line: LoopLine | None = None
    transfer_share: float = 0.0
    transfer_by: str = ""
    copy: CopyBandwidth | None = None
    from_outside: bool = False
    fewer_are_no_faster: bool = False
    fewer_are_faster: bool = False
    one_thread_is_no_faster: bool = False
    one_thread_is_faster: bool = False
    workers_are_slower: bool = False
    more_are_no_faster: bool = False
    more_are_faster: bool = False
    workers_persist: bool = False

    @property
    def spare_cpus(self) -> float | None:
        """Available CPUs that this program leaves idle, or uses for library threads that workers would not start."""
        return None if self.own_cpus is None else max(0.0, self.cpus - self.own_cpus + self.library_cpus)

    @property
    def library_cpus(self) -> float:
        """CPUs used by library threads of a main process that loads by itself.

        These threads mostly spin while waiting (OpenMP's default); in a worker, torch starts none.
        """
        others = self.main.other_threads_cpu_share if self.main and self.is_loader and not self.workers else None
        return min(others or 0.0, max(0.0, (self.own_cpus or 0.0) - 1))

    @property
    def _processes_states(self) -> list[WorkerStates]:
        """The known states of the workers, if any, and of the main process."""
        both = (self.loads, self.main) if self.workers else (self.main,)
        return [states for states in both if states]

    @property
    def runnable_threads(self) -> float:
        """The average number of threads of this program that ran or were runnable, in all of its ranks."""
        return self.ranks * sum(states.runnable_threads or 0.0 for states in self._processes_states)

    @property
    def competing_threads(self) -> float:
        """The average number of runnable threads without those that send batches: they continue a worker's work."""
        return self.ranks * sum(states.competing_threads for states in self._processes_states)

    @property
    def library_share(self) -> float | None:
        """CPU time of other threads of a loading process, without those that send batches; `None` if unknown."""
        if self.loads is None or self.loads.other_threads_cpu_share is None:
            return None
        return self.loads.library_share

    @property
    def pinning_share(self) -> float:
        """The share of time in which the main process's pinning thread ran or was runnable."""
        return (self.main.pinning_share if self.main else None) or 0.0

    @property
    def threads_per_loading(self) -> float:
        """Threads that want to run, per loading process."""
        return self.competing_threads / (self.ranks * max(1, self.workers))

    @property
    def less_is_faster(self) -> bool:
        """Whether fewer workers, or fewer threads in each, were measured as faster."""
        return self.fewer_are_faster or self.one_thread_is_faster

    @property
    def main_has_busy_threads(self) -> bool:
        """Whether other threads of the main process use a CPU for most of the time."""
        return self.main is not None and (self.main.other_threads_cpu_share or 0.0) >= MOST

    @property
    def tiny_batches(self) -> bool:
        """Whether making a batch takes less time than handing it over from a worker."""
        return 0 < sum(self.wall_s.values()) * (self.batch_samples or 0.0) < SHORT_BATCH_S

    @property
    def waited_for_cpu(self) -> float:
        """The share of time that the loading processes spent in a run queue; without workers, of the loading time."""
        if self.loads is None:
            return 0.0
        return min(1.0, self.loads.run_queue_share / self._loading_share)

    @property
    def _loading_share(self) -> float:
        """The share of the loading processes' time in which they may load; without workers, only the wait."""
        return 1.0 if self.workers else max(self.wait_share, 0.05)

    @property
    def blocked_at_work(self) -> float:
        """The blocked share of the time in which the loading processes have work."""
        if self.workers and self.loads is not None:
            if self.idle_share is None:
                return 0.0  # workers may be blocked because they have no work
            idle = min(self.idle_share, MOST_IDLE)
            return max(0.0, self.loads.blocked_share - idle) / (1 - idle)
        wall_s, cpu_s = sum(self.wall_s.values()), sum(self.cpu_s.values())
        free = min((cpus for cpus in (self.spare_cpus, self.idle_cpus) if cpus is not None), default=0.0)
        if wall_s <= 0:
            return self._blocked_in_wait
        if self.loads is None and free < SPARE_CPUS:
            return max(0.0, 1 - cpu_s / wall_s * self._queued(free)) if free else 0.0
        children = (self.loads.children_cpu_share if self.loads else None) or 0.0
        return max(0.0, 1 - cpu_s / wall_s - self.waited_for_cpu - children / self._loading_share)

    @property
    def _blocked_in_wait(self) -> float:
        """The least share of the wait in which a main process without timed stages was blocked, if all steps were.

        CPU time of its other threads and of its child programs can be work that it waited for.
        """
        if self.loads is None or self.workers or self.wait_share <= 0:
            return 0.0
        return max(0.0, self.loads.blocked_share - self.helping_share - (1 - self.wait_share)) / self.wait_share

    @property
    def helping_share(self) -> float:
        """CPU time of a loading process's other threads and child programs, over its own time; can exceed 1."""
        states = self.loads
        return (states.other_threads_cpu_share or 0.0) + (states.children_cpu_share or 0.0) if states else 0.0

    def _queued(self, free_cpus: float) -> float:
        """The factor by which a CPU-bound thread's wall time exceeds its CPU time, with `free_cpus` CPUs free.

        Source: processor sharing, Kleinrock, "Queueing Systems", volume 2.
        """
        return self.cpus / free_cpus

    def blocked_s(self, stage: str) -> float:
        """Seconds per sample that a stage took without using a CPU."""
        return max(0.0, self.wall_s.get(stage, 0.0) - self.cpu_s.get(stage, 0.0))

    @property
    def in_threads(self) -> bool:
        """Whether the workers are threads of one process, which share a GIL."""
        return self.loads is not None and self.loads.are_threads

    def blocked_on_share(self, kind: str) -> float:
        """The share of the workers' time with work in which they were seen blocked on this kind of wait."""
        seen = self.loads.blocked_on if self.loads else None
        if not seen:
            return 0.0
        busy = sum(share for name, share in seen.items() if name != "queue")
        return seen.get(kind, 0.0) / busy if busy > 0 else 0.0

    @property
    def own_samples_per_s(self) -> float:
        """The rate of the one process that all other facts are about; ranks that do not step together differ in it."""
        known = self.slowest_rank_samples_per_s
        return self.samples_per_s / self.ranks_of_rate if known is None else known

    @property
    def bytes_asked_per_sample(self) -> float:
        """Bytes per sample that the loading processes requested from the system, from files and pipes."""
        rate = self.loads.read_bytes_per_s if self.loads else None
        return (rate or 0.0) / self.own_samples_per_s if self.own_samples_per_s else 0.0

    @property
    def bytes_read(self) -> float:
        """Bytes read per sample, by file sizes or by system calls; from outside the process, bytes per wait."""
        return max(self.bytes_per_sample or 0.0, self.bytes_asked_per_sample, self.bytes_per_wait or 0.0)

    @property
    def faults_per_sample(self) -> float:
        """Minor page faults of the loading processes, per sample."""
        rate = self.loads.minor_faults_per_s if self.loads else None
        return (rate or 0.0) / self.own_samples_per_s if self.own_samples_per_s else 0.0
