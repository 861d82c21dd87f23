"""What a diagnosis looks at: the subject's trials as numbers that can be compared, `None` for what is not known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from loaderbench.diagnosis.thresholds import LOOKS_APART, SHORT_BATCH_S, SPARE_CPUS
from loaderbench.loaders import worker_count
from loaderbench.records import CopyBandwidth, Environment, Trial, WaitParts, WorkerStates

Seconds = dict[str, float]
MOST_IDLE = 0.9  # of the rest too little would be left to divide by


@dataclass(frozen=True, kw_only=True)
class Facts:
    """One configuration. Times are seconds per sample of one worker; shares are of the loading process's time.

    `from_outside`: of a process that was attached to. Its rate is not known, and times are shares of the working time.

    `loads`: the workers, or the main process where there are none. `cpu_s` and `blocked_s` are by stage; what is
    neither was spent waiting for a CPU. `spare_cpus` are those that this program leaves of what it may use; `idle_cpus`
    those that nobody used. `processes` are those below the main one. `idle_share` is the workers' time without work.
    `ended_share` is the part of all workers' time after some have ended, as workers of an iterable dataset may.
    Of a distributed training, `ranks` share these CPUs, each with as many workers, and their use is counted together.
    `samples_per_s` is that of one process, or of all `ranks_of_rate` ranks of a trial together.
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
    batch_samples: float | None = 1.0
    cpu_s: Seconds = field(default_factory=dict)
    wall_s: Seconds = field(default_factory=dict)
    loads: WorkerStates | None = None
    main: WorkerStates | None = None
    idle_share: float | None = None
    ended_share: float = 0.0
    own_cpus: float | None = None
    idle_cpus: float | None = None
    others_cpus: float | None = None
    throttled_share: float | None = None
    huge_faults_per_s: float = 0.0
    parts: WaitParts | None = None
    next_s: float | None = None
    next_cpu_s: float | None = None
    sampler_s: float = 0.0
    bytes_per_sample: float | None = None
    bytes_share: float | None = None
    bytes_per_wait: float | None = None
    tail_share: float = 0.0
    startup_share: float = 0.0
    startup_s: float | None = None
    transfer_share: float = 0.0
    transfer_by: str = ""
    copy: CopyBandwidth | None = None
    from_outside: bool = False
    fewer_are_slower: bool = False
    workers_are_slower: bool = False

    @property
    def spare_cpus(self) -> float | None:
        """CPUs of those allotted that this program leaves, or fills with what workers would not start."""
        return None if self.own_cpus is None else max(0.0, self.cpus - self.own_cpus + self.library_cpus)

    @property
    def library_cpus(self) -> float:
        """CPUs in use by library threads of a main process that loads by itself.

        They mostly wait for it, awake (OpenMP's default); in a worker torch starts none.
        """
        others = self.main.other_threads_cpu_share if self.main and self.is_loader and not self.workers else None
        return min(others or 0.0, max(0.0, (self.own_cpus or 0.0) - 1))

    @property
    def runnable_threads(self) -> float:
        """Threads of this program that ran or were ready to, at a time, in all of its ranks."""
        both = (self.loads, self.main) if self.workers else (self.main,)
        return self.ranks * sum(states.runnable_threads or 0.0 for states in both if states)

    @property
    def pinning_share(self) -> float:
        """The share of the time in which the main process's thread that pins memory ran, or was ready to."""
        return (self.main.pinning_share if self.main else None) or 0.0

    @property
    def threads_per_loading(self) -> float:
        """Threads that want to run, for each process that loads."""
        return self.runnable_threads / (self.ranks * max(1, self.workers))

    @property
    def tiny_batches(self) -> bool:
        """Whether a batch is made in less time than its way out of a worker takes."""
        return 0 < sum(self.wall_s.values()) * (self.batch_samples or 0.0) < SHORT_BATCH_S

    @property
    def waited_for_cpu(self) -> float:
        """The share of its time that who loads stood in a run queue; of a main process, only of what it loads in."""
        if self.loads is None:
            return 0.0
        working = 1.0 if self.workers else max(self.wait_share, 0.05)
        return min(1.0, self.loads.run_queue_share / working)

    @property
    def blocked_at_work(self) -> float:
        """The blocked share of the time in which the loading processes have work."""
        if self.workers and self.loads is not None:
            if self.idle_share is None:
                return 0.0  # unknown whether a worker is blocked because it has no work
            idle = min(self.idle_share, MOST_IDLE)
            return max(0.0, self.loads.blocked_share - idle) / (1 - idle)
        wall_s, cpu_s = sum(self.wall_s.values()), sum(self.cpu_s.values())
        free = min((cpus for cpus in (self.spare_cpus, self.idle_cpus) if cpus is not None), default=0.0)
        if wall_s <= 0 or (self.loads is None and free < SPARE_CPUS):
            return 0.0  # a thread that does not run may as well wait for a CPU, of which others hold some
        return max(0.0, 1 - cpu_s / wall_s - self.waited_for_cpu)

    def blocked_s(self, stage: str) -> float:
        """Seconds per sample that a stage took without using a CPU."""
        return max(0.0, self.wall_s.get(stage, 0.0) - self.cpu_s.get(stage, 0.0))

    @property
    def in_threads(self) -> bool:
        """Whether the workers are threads of one process, which share a GIL."""
        return self.loads is not None and self.loads.are_threads

    def stood_at(self, kind: str) -> float:
        """The share of the workers' time with something to do in which they were seen to stand at this."""
        seen = self.loads.blocked_on if self.loads else None
        if not seen:
            return 0.0
        busy = sum(share for name, share in seen.items() if name != "queue")
        return seen.get(kind, 0.0) / busy if busy > 0 else 0.0

    @property
    def own_samples_per_s(self) -> float:
        """Of the one process that everything else is about."""
        return self.samples_per_s / self.ranks_of_rate

    @property
    def bytes_asked_per_sample(self) -> float:
        """What who loads asked the system to read, from files and pipes."""
        rate = self.loads.read_bytes_per_s if self.loads else None
        return (rate or 0.0) / self.own_samples_per_s if self.samples_per_s else 0.0

    @property
    def bytes_read(self) -> float:
        """Bytes that a sample reads, by its files or by what the system was asked for; from outside those of a wait."""
        return max(self.bytes_per_sample or 0.0, self.bytes_asked_per_sample, self.bytes_per_wait or 0.0)

    @property
    def faults_per_sample(self) -> float:
        """Minor page faults of who loads."""
        rate = self.loads.minor_faults_per_s if self.loads else None
        return (rate or 0.0) / self.own_samples_per_s if self.samples_per_s else 0.0


def gather(
    trials: Sequence[Trial],
    environment: Environment,
    *,
    fewer_are_slower: bool = False,
    workers_are_slower: bool = False,
) -> Facts | None:
    """The means over completed trials of one configuration; `None` where there is none.

    `fewer_are_slower`: fewer workers were measured and are slower. `workers_are_slower`: so are any at all.
    """
    done = [trial for trial in trials if trial.status == "completed" and (trial.samples_per_s or trial.is_from_outside)]
    if not done:
        return None
    workers = workers_of(done[0])
    loads, idle_share = _typical(done, "workers" if workers else "main_process"), _idle_share(done, workers)
    return Facts(
        workers=workers,
        cpus=environment.cpus_allotted,
        cpus_online=environment.cpus_online,
        is_loader=workers > 0 or worker_count(done[0].config, {}) is not None or done[0].sample_times is not None,
        processes=int(_mean(done, "machine.processes") or 0),
        ranks=int(_mean(done, "machine.ranks") or 1),
        ranks_of_rate=done[0].processes,
        wait_share=_mean(done, "data_wait_share") or 0.0,
        samples_per_s=_mean(done, "samples_per_s") or 0.0,
        batch_samples=_mean_of(trial.samples / trial.batches for trial in done if trial.samples and trial.batches),
        cpu_s=_by_stage(done, "cpu_s") or _by_looks(done, running=True),
        wall_s=_by_stage(done, "wall_s") or _by_looks(done, running=False),
        loads=_without_polled_sockets(_without_idle_threads(loads, idle_share), idle_share),
        main=_typical(done, "main_process"),
        idle_share=idle_share,
        ended_share=_mean_of(_ended_share(trial, workers) for trial in done) or 0.0,
        own_cpus=_own_cpus(done, environment),
        idle_cpus=_mean(done, "machine.idle_cpus"),
        others_cpus=_mean(done, "machine.others_cpus"),
        throttled_share=_mean(done, "machine.throttled_share"),
        huge_faults_per_s=_mean(done, "machine.huge_faults_per_s") or 0.0,
        parts=_typical(done, "wait_parts") or _parts_by_looks(done, workers),
        next_s=_mean(done, "taking.wall_s"),
        next_cpu_s=_mean(done, "taking.cpu_s"),
        sampler_s=_mean(done, "taking.sampler_s") or 0.0,
        bytes_per_sample=_mean(done, "reads.bytes_per_sample"),
        bytes_share=_mean_of((_mean(done, "reads.bytes_share"), _mean(done, "kernel_looks.bytes_share"))),
        bytes_per_wait=_mean(done, "kernel_looks.bytes_per_wait"),
        tail_share=_mean_of(map(_tail_share, done)) or 0.0,
        startup_share=_mean_of(map(startup_share, done)) or 0.0,
        startup_s=_mean_of(map(startup_s, done)),
        transfer_share=_mean_of(map(_transfer_share, done)) or 0.0,
        from_outside=done[0].is_from_outside,
        fewer_are_slower=fewer_are_slower,
        workers_are_slower=workers_are_slower,
    )


def startup_s(trial: Trial) -> float | None:
    """Seconds of each epoch that pass before its first batch, beyond what a batch waits anyway."""
    boundary_s = _reading(trial, "epochs.boundary_s")
    if boundary_s is None:
        return None
    return max(0.0, float(boundary_s) - (_reading(trial, "data_wait.mean_s") or 0.0))


def startup_share(trial: Trial) -> float | None:
    """The share of the whole time that passes at epoch boundaries, where the loop was seen to cross some."""
    if trial.stack_looks is not None:
        return trial.stack_looks.startup_share
    each_s, epochs = startup_s(trial), trial.epochs
    if each_s is None or epochs is None or not trial.steady_s or epochs.begun < 2:
        return None
    lost_s = each_s * (epochs.begun - 1)
    return lost_s / (lost_s + trial.steady_s)


def workers_of(trial: Trial) -> int:
    """How many processes or threads load: as configured by an axis, else as many as were seen."""
    configured = worker_count(trial.config, {})
    return int(_reading(trial, "workers.count") or 0) if configured is None else configured


def _idle_share(trials: Sequence[Trial], workers: int) -> float | None:
    """Time of the workers without work: what they were seen to wait at their queue, or what no stage took.

    They poll more than their queue where the first is far longer. Threads wait for work at a lock: checks do not show
    which are idle.
    """
    if not workers:
        return None
    stacks = [shares for trial in trials if (shares := _reading(trial, "stack_looks.idle_share")) is not None]
    if stacks:
        return fmean(stacks)
    polling = [trial.workers for trial in trials if trial.workers and not trial.workers.are_threads]
    looks = [states.blocked_on for states in polling if states.blocked_on]
    busy = [
        _stages_s(trial) * (trial.samples_per_s or 0) / (workers * trial.processes) for trial in trials if trial.stages
    ]
    no_stage = max(0.0, 1 - fmean(busy)) if busy else None
    at_queue = fmean(shares.get("queue", 0.0) for shares in looks) if looks else None
    if at_queue is None or (no_stage is not None and at_queue > no_stage + LOOKS_APART):
        return no_stage
    return at_queue


def _without_idle_threads(states: WorkerStates | None, idle_share: float | None) -> WorkerStates | None:
    """The same, where threads without work count as that: they wait for it at a lock, where a process would poll.

    Where it is unknown for how long they have no work, locks show nothing.
    """
    seen = states.blocked_on if states else None
    if states is None or not states.are_threads or not seen:
        return states
    if idle_share is None:
        return replace(states, blocked_on=None)
    idle = min(idle_share, seen.get("lock", 0.0))
    return replace(states, blocked_on={**seen, "lock": seen.get("lock", 0.0) - idle, "queue": idle})


def _without_polled_sockets(states: WorkerStates | None, idle_share: float | None) -> WorkerStates | None:
    """The same, where polling inside of a stage is waiting for a device, and not for work.

    Python polls a socket that has a time limit, as torch polls the queue of a worker.
    """
    seen = states.blocked_on if states else None
    if states is None or seen is None or idle_share is None or seen.get("queue", 0.0) <= idle_share + LOOKS_APART:
        return states
    polled = seen["queue"] - idle_share
    return replace(states, blocked_on={**seen, "queue": idle_share, "device": seen.get("device", 0.0) + polled})


def _ended_share(trial: Trial, workers: int) -> float | None:
    """The part of all workers' time after some had ended while others still worked."""
    count = _reading(trial, "workers.mean_count")
    return None if not workers or count is None or trial.processes > 1 else max(0.0, 1 - count / workers)


def _stages_s(trial: Trial) -> float:
    return sum(cost.wall_s or 0.0 for cost in (trial.stages or {}).values())


def _own_cpus(trials: Sequence[Trial], environment: Environment) -> float | None:
    own_cpus, percent = _mean(trials, "machine.own_cpus"), _mean(trials, "cpu_percent_of_allotted")
    return own_cpus if own_cpus is not None or percent is None else percent / 100 * environment.cpus_allotted


def _tail_share(trial: Trial) -> float | None:
    """What slow samples cost, as a share of all the work: samples may be the least of it."""
    share, whole_s = _reading(trial, "sample_times.tail_share"), _stages_s(trial)
    if share is None or whole_s <= 0:
        return None
    collating_s = trial.stages["collate"].wall_s if trial.stages and "collate" in trial.stages else 0.0
    return float(share) * (1 - (collating_s or 0.0) / whole_s)


def _transfer_share(trial: Trial) -> float | None:
    cost, one = (trial.step_stages or {}).get("transfer"), trial.of_one_process
    if cost is None or cost.wall_s is None or not one.steady_s:
        return None
    return cost.wall_s * (one.batches or 0) / one.steady_s


def _by_stage(trials: Sequence[Trial], what: str) -> Seconds:
    names = {name: None for trial in trials for name in trial.stages or {}}
    costs = {name: [getattr((trial.stages or {}).get(name), what, None) for trial in trials] for name in names}
    means = {name: _mean_of(found) for name, found in costs.items()}
    return {name: mean_s for name, mean_s in means.items() if mean_s is not None}


def _by_looks(trials: Sequence[Trial], *, running: bool) -> Seconds:
    """The same of stacks: shares of the working time in place of seconds."""
    found = next((trial.stack_looks.stages for trial in trials if trial.stack_looks), {})
    return {stage: looks.share * (looks.running_share if running else 1) for stage, looks in found.items()}


def _parts_by_looks(trials: Sequence[Trial], workers: int) -> WaitParts | None:
    """The same of a wait, as shares of it: the main process's by stacks, and those of who keeps a batch by the kernel.

    While no worker has work, the batch that is waited for was made before. While one has work, the hand-over waits for
    it: its own Python code keeps the thread that sends a batch waiting.
    """
    stacks = next((trial.stack_looks for trial in trials if trial.stack_looks), None)
    kept_by = next((trial.kernel_looks.waits for trial in trials if trial.kernel_looks), None)
    waits = stacks.waits if stacks else {"waiting": 1.0} if kept_by else {}
    if not waits:
        return None
    none_works = ((stacks.idle_share if stacks else None) or 0.0) ** max(1, workers)
    handing_over, waiting = waits.get("transport", 0.0), waits.get("waiting", 0.0)
    kept_by = kept_by or {"making": 1 - none_works, "transport": none_works}
    return WaitParts(
        batches=0,
        not_begun_s=0.0,
        making_s=waiting * kept_by.get("making", 0.0) + handing_over * (1 - none_works),
        order_s=waiting * kept_by.get("order", 0.0),
        transport_s=waiting * kept_by.get("transport", 0.0) + handing_over * none_works,
        main_process_s=waits.get("main_process", 0.0),
    )


def _reading(trial: Trial, path: str) -> Any:
    """What stands at `field.field`; `None` where any of it does."""
    found: Any = trial
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _mean(trials: Iterable[Trial], path: str) -> float | None:
    return _mean_of(_reading(trial, path) for trial in trials)


def _mean_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _typical(trials: Iterable[Trial], path: str) -> Any:
    """One record with the mean of every number of theirs, and of the numbers by name; all else is the first's."""
    known = [found for trial in trials if (found := _reading(trial, path)) is not None]
    if len(known) < 2:
        return known[0] if known else None
    return replace(known[0], **{name: _typical_value([vars(one)[name] for one in known]) for name in vars(known[0])})


def _typical_value(values: Sequence[Any]) -> Any:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if numbers:
        return fmean(numbers)
    shares = [value for value in values if isinstance(value, dict)]
    names = {name for found in shares for name, share in found.items() if isinstance(share, int | float)}
    return {name: fmean(found.get(name, 0.0) for found in shares) for name in sorted(names)} if names else values[0]
