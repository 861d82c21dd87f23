"""Watches the processes of a training through the kernel alone: what they wait for, use and read."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from loaderbench.attach.job import Training
from loaderbench.attach.workers import BlockedReads, IdleLoaders
from loaderbench.cpu_lists import allowed_cpus
from loaderbench.diagnosis.thresholds import NOTICED
from loaderbench.environment import allotted_to, quota_periods
from loaderbench.monitors import (
    Blocked,
    GpuMonitor,
    GpuThread,
    MachineWatch,
    Sample,
    TreeMonitor,
    WorkerWatch,
    gpus_used_by,
    kind_at,
    proc,
)
from loaderbench.monitors.blocked import (
    DEVICE,
    FEWEST_LOOKS,
    LOCK,
    OTHER,
    PAGE_FAULT,
    QUEUE,
    RUNNING,
    STORAGE,
    kind_at_worker,
)
from loaderbench.monitors.machine import ProgramUse, is_alive, of_all, use_of, use_of_this_program
from loaderbench.monitors.workers import PINNING_THREAD

LOOK_S, READ_S = 0.05, 0.25
"""Seconds between checks of what threads are blocked on, and between readings of everything else."""


@dataclass
class MainLooks:
    """Checks of what the main thread does, and of the thread that pins memory, if there is one."""

    kinds: Counter[str] = field(default_factory=Counter)
    hidden: int = 0  # checks of a sleeping thread for which the kernel named no place
    waits_for_pinned: int = 0
    pins: bool = False

    def look(self, pid: int) -> bool:
        """Check once. Returns whether the main thread seems to wait for a batch."""
        kind, pinning = _kind(f"{pid}"), _pinning_thread(pid)
        self.kinds[kind] += 1
        self.hidden += kind == RUNNING and proc.is_sleeping(pid)
        if pinning is None:
            return kind == QUEUE
        self.pins = True
        waits = kind == LOCK and _kind(f"{pid}/task/{pinning}") == QUEUE
        self.waits_for_pinned += waits
        return waits

    @property
    def shares(self) -> dict[str, float] | None:
        """States of the main thread, as shares of all checks; `None` if the kernel hides them."""
        looks = self.kinds.total()
        if looks < FEWEST_LOOKS or (self.kinds[RUNNING] == looks and self.hidden):
            return None
        return {kind: count / looks for kind, count in sorted(self.kinds.items())}

    @property
    def wait_share(self) -> float | None:
        """The share of checks that found a wait for a batch; `None` if there were too few, or if the kernel hides it.

        Batches arrive through a pipe. With pinned memory, they arrive through the pinning thread: there is nothing to
        pin while that thread waits at the pipe and the main thread waits for it. A lock can be that of a thread that
        takes batches and has another name.
        """
        shares = self.shares
        if shares is None:
            return None
        if not self.pins and shares.get(QUEUE, 0.0) < NOTICED <= shares.get(LOCK, 0.0):
            return None
        return (self.waits_for_pinned if self.pins else self.kinds[QUEUE]) / self.kinds.total()


class TrainingWatch:
    """Everything that is read of one training.

    `use_on` returns what the entire job uses on the given CPUs. `cpus` are those that this training may use.
    """

    def __init__(self, training: Training, use_on: Callable[[Sequence[int]], ProgramUse]) -> None:
        self.training, self.cpus = training, allowed_cpus(training.pid)
        self.workers, self.main_process, self.main_looks = WorkerWatch(), WorkerWatch(), MainLooks()
        self.worker_looks, self.awaited = Blocked(at=kind_at_worker), AwaitedLooks()
        self.blocked_reads = BlockedReads()
        self.allotted = allotted_to(training.pid)
        self._use, self._periods = ProgramUse({}, 0), dict[str, tuple[int, int]]()
        self.machine = MachineWatch(self._quota_periods, lambda: use_on(self.cpus), self.cpus)
        self.gpus, self.no_gpu = gpus_used_by(proc.process_tree(training.pid))
        self.gpu_monitor = GpuMonitor(self.gpus)
        self.gpu_thread = GpuThread(self.gpu_monitor, time.perf_counter, interval_s=READ_S, describe=True)
        self.samples: list[Sample] = []
        self.pss_bytes: int | None = None
        self.read_memory_once = False
        self._tree = TreeMonitor(training.pid)
        self._pids: list[int] = []
        self._counts: list[int] = []
        self._idle_loaders = IdleLoaders()

    @property
    def idle_workers(self) -> frozenset[int]:
        """The workers of loaders that were not iterated over."""
        return self._idle_loaders.idle

    @property
    def most_workers(self) -> int:
        """The largest number of active workers, without the first reading, which cannot tell which are active."""
        return max(self._counts[1:] or self._counts or [0])

    def use(self) -> ProgramUse:
        """Resource use of all its processes and their ended children; after its end, the last that was read."""
        found = use_of(self.training.pid)
        if found.cpu_s >= self._use.cpu_s:
            self._use = found
        return self._use

    def _quota_periods(self) -> dict[str, tuple[int, int]]:
        self._periods = quota_periods(Path(f"/proc/{self.training.pid}/cgroup")) or self._periods
        return self._periods

    def look(self) -> None:
        """Check what threads are blocked on now."""
        pid = self.training.pid
        if self.main_looks.look(pid):
            self.awaited.look(pid, self._pids)
        self.worker_looks.look(self._pids)

    def read(self) -> None:
        """Read everything else, and find new processes."""
        self._pids = self._idle_loaders.at_work(self.training.workers())
        self._counts.append(len(self._pids))
        self.workers.read(self._pids)
        self.blocked_reads.read(self._pids)
        self.main_process.read([self.training.pid])
        self._tree.look_for_processes()
        self.samples.append(Sample(time.perf_counter(), self._tree.read(with_disk=True), None))
        self.use()
        self._quota_periods()

    def read_memory(self) -> None:
        """Read proportional memory (PSS). This takes milliseconds per process, which cannot map memory then."""
        self.read_memory_once = True
        self.workers.read_memory(self._pids)
        self.main_process.read_memory([self.training.pid])
        self.pss_bytes = self._tree.pss_bytes()

    def blocked_on(self) -> dict[str, float] | None:
        """What the workers were blocked on, as shares of all checks; `None` without workers."""
        return self.worker_looks.shares() if self.most_workers else None


class JobWatch:
    """Watches all ranks of a job, round-robin."""

    def __init__(self, trainings: Sequence[Training]) -> None:
        self.watches = [TrainingWatch(training, self._use_on) for training in trainings]
        self.looked_s = 0.0

    def _use_on(self, cpus: Sequence[int]) -> ProgramUse:
        """Resource use of all ranks that may run on one of these CPUs. A rank's siblings are not other programs.

        The watch's own CPU time counts as well, if it runs on the same CPUs.
        """
        job = of_all([watch.use() for watch in self.watches if not set(cpus).isdisjoint(watch.cpus)])
        looking_s = {} if set(cpus).isdisjoint(allowed_cpus()) else use_of_this_program().cpu_s_by_rank
        return replace(job, cpu_s_by_rank={**job.cpu_s_by_rank, **looking_s})

    def look_for(self, seconds: float) -> None:
        """Watch for this long, or until every training has ended. What was seen before Ctrl-C is kept."""
        began_s = time.monotonic()
        self._read()
        for watch in self.watches:
            watch.machine.begin()
            watch.gpu_thread.begin()
        half_s, next_read_s = began_s + seconds / 2, began_s + READ_S
        try:
            while time.monotonic() < began_s + seconds and any(is_alive(one.training.pid) for one in self.watches):
                time.sleep(LOOK_S)
                for watch in self.watches:
                    watch.look()
                if time.monotonic() >= next_read_s:
                    self._read()
                    next_read_s = time.monotonic() + READ_S
                if time.monotonic() >= half_s:
                    half_s = float("inf")
                    for watch in self.watches:
                        watch.read_memory()
        finally:
            self._read()
            self.looked_s = time.monotonic() - began_s
            for watch in self.watches:
                watch.machine.look()
                watch.gpu_thread.end()

    def _read(self) -> None:
        for watch in self.watches:
            if is_alive(watch.training.pid):
                watch.read()


def _kind(process: str) -> str:
    return kind_at(f"/proc/{process}") or OTHER


def _pinning_thread(pid: int) -> int | None:
    names = ((thread, proc.read_text(f"/proc/{pid}/task/{thread}/comm").strip()) for thread in proc.threads_of(pid))
    return next((thread for thread, name in names if name == PINNING_THREAD), None)


class AwaitedLooks:
    """Checks all workers at moments in which the main process waits. `root` is for tests.

    A worker that waits for its next indices, with no activity in any of its threads, has delivered everything requested
    of it. If another worker is busy at that time, the idle worker's batches are ready in the main process, which
    returns batches in order.
    """

    def __init__(self, root: str = "/proc") -> None:
        self._root = root
        self._seen: Counter[str] = Counter()

    def look(self, main: int, workers: Sequence[int]) -> None:
        """Check once. The result counts only if the main process received no batch during the check."""
        before = self._times_blocked(main)
        found = self._find(workers) if workers else None
        if found is not None and self._kind(main) != RUNNING and self._times_blocked(main) == before:
            self._seen[found] += 1

    def _find(self, workers: Sequence[int]) -> str:
        idle = [pid for pid in workers if kind_at_worker(f"{self._root}/{pid}") == QUEUE]
        if len(idle) == len(workers):
            return "transport"
        return "order" if any(map(self._is_done, idle)) else "making"

    @property
    def shares(self) -> dict[str, float] | None:
        """Results as shares of all checks; `None` if there are too few."""
        looks = self._seen.total()
        return {what: count / looks for what, count in sorted(self._seen.items())} if looks >= FEWEST_LOOKS else None

    def _is_done(self, pid: int) -> bool:
        """Whether an idle worker has nothing left to send."""
        threads = [f"{pid}/task/{thread}" for thread in proc.threads_of(pid, self._root)]
        return not set(map(self._kind, threads)) & {RUNNING, DEVICE, STORAGE, PAGE_FAULT}

    def _times_blocked(self, pid: int) -> int | None:
        return proc.parse_times_blocked(proc.read_text(f"{self._root}/{pid}/status"))

    def _kind(self, process: int | str) -> str | None:
        return kind_at(f"{self._root}/{process}")
