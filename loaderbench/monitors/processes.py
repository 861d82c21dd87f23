"""Scheduling, fault and read counters of single Linux processes and threads, and sums over them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from loaderbench.monitors import proc

FEWEST_READ_BYTES = 64 * 1024  # fewer come from the worker's pipe and a few imports, not from samples
FEWEST_TICKS = 10  # kernel clock ticks of 10 ms

_STARTED = proc.Scheduled(0, 0)


@dataclass(frozen=True)
class Reading:
    """One process at one moment. `threads` has `None` for a thread that could not be read."""

    at_s: float
    activity: proc.Activity
    pid: int
    threads: dict[int, proc.Scheduled | None]
    io: proc.ReadCounts | None
    is_thread: bool = False

    @property
    def main(self) -> proc.Scheduled | None:
        """The main thread's counters."""
        return self.threads.get(self.pid)

    def without(self, apart: Collection[int]) -> Reading:
        """The reading without the threads in `apart`. Page faults and ticks still cover all threads."""
        if not apart:
            return self
        return replace(self, threads={thread: times for thread, times in self.threads.items() if thread not in apart})


def read_process(root: str, pid: int, clock: Callable[[], float]) -> Reading | None:
    """Read a process once, in about 50 microseconds; `None` if it has ended or cannot be read."""
    folder = f"{root}/{pid}"
    return _read(folder, pid, clock, lambda: dict(_threads(f"{folder}/task")))


def read_thread(root: str, thread: int, clock: Callable[[], float]) -> Reading | None:
    """Read a thread of this process like a process; `None` if it has ended or cannot be read."""
    folder = f"{root}/self/task/{thread}"
    found = _read(folder, thread, clock, lambda: {thread: scheduled(folder)})
    return found and replace(found, is_thread=True)


def _read(
    folder: str, number: int, clock: Callable[[], float], threads: Callable[[], dict[int, proc.Scheduled | None]]
) -> Reading | None:
    try:
        stat = proc.read_text(f"{folder}/stat")
        activity = proc.parse_activity(stat) if stat else None
        if activity is None or not activity.alive:
            return None
        at_s, scheduled = clock(), threads()
        io = proc.read_text(f"{folder}/io")
        return Reading(at_s, activity, number, scheduled, proc.parse_read_counts(io) if io else None)
    except (OSError, ValueError, LookupError):  # the process ended, or this /proc is not Linux's
        return None


@dataclass
class ThreadTimes:
    """Seconds of a thread on a CPU, and on a CPU or in a run queue."""

    run_s: float = 0.0
    runnable_s: float = 0.0


@dataclass
class Sums:
    """Sums over processes and intervals.

    `wall_s` adds up the time of all processes; `clock_s` is elapsed time, for any number of them. `others` are the
    threads by ID, without those that run the processes' main functions. Negative differences count as 0: a counter that
    fell belongs to another thread with the same ID.
    """

    wall_s: float = 0.0
    clock_s: float = 0.0
    run_s: float = 0.0
    wait_s: float = 0.0
    runnable_s: float = 0.0
    others: defaultdict[int, ThreadTimes] = field(default_factory=lambda: defaultdict(ThreadTimes))
    user_ticks: int = 0
    system_ticks: int = 0
    waited_ticks: int = 0
    threads: int = 0
    intervals: int = 0
    minor_faults: int = 0
    major_faults: int = 0
    asked_bytes: int = 0
    disk_bytes: int = 0
    read_io: bool = False
    incomplete: bool = False

    def add(self, pairs: Sequence[tuple[Reading, Reading]]) -> None:
        """Add the intervals between two readings of each process."""
        elapsed_s = [self._add(before, after) for before, after in pairs]
        self.clock_s += max(elapsed_s, default=0.0)
        in_threads = [_waited_ticks(before, after) for before, after in pairs if after.is_thread]
        self.waited_ticks += max(in_threads, default=0)  # the kernel counts children per process, not per thread

    @property
    def others_s(self) -> float:
        """CPU seconds of the other threads."""
        return sum(thread.run_s for thread in self.others.values())

    def times_of(self, threads: Iterable[int]) -> ThreadTimes | None:
        """The times of these threads together; `None` if none of them was read."""
        found = [self.others[thread] for thread in threads if thread in self.others]
        if not found:
            return None
        return ThreadTimes(sum(one.run_s for one in found), sum(one.runnable_s for one in found))

    def system_share(self) -> float | None:
        """The kernel's share of the CPU time; `None` if too little CPU time was used."""
        ticks = self.user_ticks + self.system_ticks
        return self.system_ticks / ticks if ticks >= FEWEST_TICKS else None

    @property
    def children_s(self) -> float:
        """CPU seconds of ended child processes."""
        return self.waited_ticks / proc.TICKS_PER_S

    def page_cache_hits(self) -> tuple[float | None, str]:
        """The share of the requested bytes that was not fetched from disk, or the reason why it is unknown."""
        if not self.read_io:
            return None, "/proc/<pid>/io of the workers is not readable"
        if self.asked_bytes < FEWEST_READ_BYTES:
            return None, f"the workers read less than {FEWEST_READ_BYTES // 1024} KiB"
        return min(1.0, max(0.0, 1 - self.disk_bytes / self.asked_bytes)), ""

    def _add(self, before: Reading, after: Reading) -> float:
        """Add one interval and return its seconds, or 0 if it is not usable."""
        if before.activity.began_ticks != after.activity.began_ticks:
            return 0.0  # the pid was reused
        if before.main is None or after.main is None:
            self.incomplete = True
            return 0.0
        wall_s = after.at_s - before.at_s
        self.wall_s += wall_s
        self.run_s += max(0, after.main.run_ns - before.main.run_ns) / 1e9
        self.wait_s += max(0, after.main.wait_ns - before.main.wait_ns) / 1e9
        for thread, run_s, runnable_s in thread_times(before, after):
            self.runnable_s += runnable_s
            if thread != after.pid:
                self.others[thread].run_s += run_s
                self.others[thread].runnable_s += runnable_s
        self.user_ticks += max(0, after.activity.user_ticks - before.activity.user_ticks)
        self.system_ticks += max(0, after.activity.system_ticks - before.activity.system_ticks)
        self.waited_ticks += 0 if after.is_thread else _waited_ticks(before, after)
        self.threads += len(after.threads)
        self.intervals += 1
        self.minor_faults += max(0, after.activity.minor_faults - before.activity.minor_faults)
        self.major_faults += max(0, after.activity.major_faults - before.activity.major_faults)
        if before.io and after.io:
            self.read_io = True
            self.asked_bytes += max(0, after.io.asked_bytes - before.io.asked_bytes)
            self.disk_bytes += max(0, after.io.disk_bytes - before.io.disk_bytes)
        return wall_s


def _waited_ticks(before: Reading, after: Reading) -> int:
    return max(0, after.activity.waited_ticks - before.activity.waited_ticks)


def _threads(folder: str) -> Iterator[tuple[int, proc.Scheduled | None]]:
    for name in os.listdir(folder):  # noqa: PTH208 - half the cost of a Path per thread
        yield int(name), scheduled(f"{folder}/{name}")


def scheduled(folder: str) -> proc.Scheduled | None:
    """The counters of the thread in this folder; `None` if it has ended or the kernel does not count."""
    text = proc.read_text(f"{folder}/schedstat")
    return proc.parse_schedstat(text) if text else None


def thread_times(before: Reading, after: Reading) -> Iterator[tuple[int, float, float]]:
    """The ID of each thread, its seconds on a CPU, and its seconds on a CPU or in a run queue.

    A thread without an earlier reading started at 0.
    """
    for thread, now in after.threads.items():
        if now is not None:
            then = before.threads.get(thread) or _STARTED
            run_ns, wait_ns = now.run_ns - then.run_ns, now.wait_ns - then.wait_ns
            yield thread, max(0, run_ns) / 1e9, max(0, run_ns + wait_ns) / 1e9
