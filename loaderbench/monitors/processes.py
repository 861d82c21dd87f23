"""CPU, memory and disk reads of a process tree, on any system; cheapest on Linux."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import psutil

from loaderbench.monitors import proc
from loaderbench.monitors.gauges import read_gauges


@dataclass(frozen=True)
class TreeReading:
    """Sums over a process tree, and what the gauges read of it.

    `cpu_s` and `read_bytes` keep those of processes that ended. Each is `None` where the system hides it.
    """

    cpu_s: float | None
    rss_bytes: int | None
    read_bytes: int | None
    gauges: Mapping[str, float] = field(default_factory=dict)


class ProcessReader(Protocol):
    """Reads one process."""

    def tree(self, root: int) -> list[int]:
        """Return the process and all below it."""
        ...

    def stat(self, pid: int) -> proc.ProcessStat | None:
        """Return CPU time and resident memory; `None` when it is gone."""
        ...

    def read_bytes(self, pid: int) -> int | None:
        """Return the bytes read from disk; `None` when they cannot be had."""
        ...

    def pss_bytes(self, pid: int) -> int | None:
        """Return the proportional memory; `None` when it cannot be had."""
        ...


class LinuxReader:
    """Reads `/proc`."""

    tree = staticmethod(proc.process_tree)
    stat = staticmethod(proc.read_stat)
    read_bytes = staticmethod(proc.read_read_bytes)
    pss_bytes = staticmethod(proc.read_pss_bytes)


class PsutilReader:
    """Reads through psutil; objects are kept, because a new one knows nothing of before."""

    def __init__(self) -> None:
        self._known: dict[int, psutil.Process] = {}

    def tree(self, root: int) -> list[int]:
        """Return the process and all below it."""
        try:
            return [root, *(child.pid for child in self._process(root).children(recursive=True))]
        except psutil.Error:
            return [root]

    def stat(self, pid: int) -> proc.ProcessStat | None:
        """Return CPU time and resident memory; `None` when it is gone."""
        try:
            process = self._process(pid)
            times = process.cpu_times()
            waited_s = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
            return proc.ProcessStat(times.user + times.system, process.memory_info().rss, waited_s)
        except psutil.Error:
            return None

    def read_bytes(self, pid: int) -> int | None:  # noqa: ARG002 - psutil has the sum of cached and uncached reads only
        """Return `None`: disk reads are not reported separately."""
        return None

    def pss_bytes(self, pid: int) -> int | None:  # noqa: ARG002 - Linux alone has it
        """Return `None`: only Linux shares out shared pages."""
        return None

    def _process(self, pid: int) -> psutil.Process:
        if pid not in self._known:
            self._known[pid] = psutil.Process(pid)
        return self._known[pid]


SOON_S = 2.0
"""A parent waits for a process that ended within this time, or never does."""


class TreeMonitor:
    """Adds up a process tree, looking for new processes only now and then.

    A process that ends between two looks was never seen. Once its parent has waited for it, the system counts its CPU
    time and its reads among those of the parent.
    """

    def __init__(self, root: int, reader: ProcessReader | None = None) -> None:
        self._root = root
        self._reader: ProcessReader = reader or (LinuxReader() if proc.available() else PsutilReader())
        self._used: dict[int, proc.ProcessStat] = {}
        self._read_bytes: dict[int, int] = {}
        self._ended_cpu_s, self._is_known = 0.0, False
        self._not_waited: list[tuple[float, float]] = []
        self._most_read_bytes: int | None = None
        self._is_whole, self._lock = True, threading.Lock()
        self._ended: list[float] = []
        self.others_ended = False  # before the last reading, and others may have begun
        self._read_at_s = time.monotonic()
        self._alive: list[int] = [root]

    def look_for_processes(self) -> None:
        """Find the processes that came since; dear enough for once a second."""
        self._watch_only(self._reader.tree(self._root))

    def watch(self, pids: Sequence[int]) -> None:
        """Read only the root and these; of what the root waits for, only what these can have used."""
        self._is_whole = False
        self._watch_only([self._root, *pids])

    def _watch_only(self, pids: list[int]) -> None:
        """Keep one sum for all that have ended: a loop may start thousands of workers."""
        with self._lock:
            self._alive = pids
            for pid in (self._used.keys() | self._read_bytes.keys()) - set(pids):
                if self._reader.stat(pid) is None:
                    self._end(pid)

    def _end(self, pid: int) -> None:
        self._ended.append(self._cpu_s(pid))
        self._used.pop(pid, None)
        self._read_bytes.pop(pid, None)

    def _cpu_s(self, pid: int) -> float:
        used = self._used.get(pid)
        return 0.0 if used is None else used.cpu_s + (used.waited_cpu_s if self._is_whole else 0.0)

    @property
    def below(self) -> Sequence[int]:
        """The known processes but the root."""
        return self._alive[1:]

    def read(self, with_disk: bool) -> TreeReading:
        """Read CPU time, memory and gauges of the known processes, and their disk reads when asked to."""
        with self._lock:
            return self._read(with_disk)

    def _read(self, with_disk: bool) -> TreeReading:
        """Parents come before their children, so no time is counted in both."""
        rss_bytes: int | None = None
        waited_s = 0.0
        for pid in self._alive:
            stat, before = self._reader.stat(pid), self._used.get(pid)
            if before and (stat is None or stat.cpu_s < before.cpu_s):  # or another process of the same number
                self._end(pid)
                before = None
            if stat is not None:
                waited_s += max(0.0, stat.waited_cpu_s - before.waited_cpu_s) if before else 0.0
                self._used[pid], self._is_known = stat, True
                rss_bytes = (rss_bytes or 0) + stat.rss_bytes
            if with_disk and (found := self._reader.read_bytes(pid)) is not None:
                self._read_bytes[pid] = found
        self._count_ended(waited_s)
        self.others_ended = waited_s > 0
        cpu_s = self._ended_cpu_s + sum(left_s for _, left_s in self._not_waited) + sum(map(self._cpu_s, self._used))
        if self._read_bytes:  # the sum falls for a moment if a process ends after its parent was read
            self._most_read_bytes = max(self._most_read_bytes or 0, sum(self._read_bytes.values()))
        known_s = cpu_s if self._is_known else None
        return TreeReading(known_s, rss_bytes, self._most_read_bytes, read_gauges(self._alive))

    def _count_ended(self, waited_s: float) -> None:
        """Keep the CPU time of those that ended since the last reading, by the time of those that were waited for.

        In a whole tree, that is their parents' from now on; what nobody waits for soon is kept. Else, they have used at
        most a CPU each since then.
        """
        now_s, seen_s = time.monotonic(), sum(self._ended)
        if self._is_whole:
            self._not_waited += [(now_s, left_s) for left_s in self._ended]
            self._give_to_parents(waited_s, now_s)
        else:
            unseen_s = min(max(0.0, waited_s - seen_s), len(self._ended) * (now_s - self._read_at_s))
            self._ended_cpu_s += seen_s + unseen_s
        self._ended, self._read_at_s = [], now_s

    def _give_to_parents(self, waited_s: float, now_s: float) -> None:
        still: list[tuple[float, float]] = []
        for at_s, left_s in self._not_waited:
            given_s = min(left_s, waited_s)
            waited_s -= given_s
            if now_s - at_s > SOON_S:
                self._ended_cpu_s += left_s - given_s
            elif left_s > given_s:
                still.append((at_s, left_s - given_s))
        self._not_waited = still

    def pss_bytes(self) -> int | None:
        """Read the proportional memory of all; `None` when none tells."""
        found = [self._reader.pss_bytes(pid) for pid in self._alive]
        known = [size for size in found if size is not None]
        return sum(known) if known else None


FEWEST_READ_BYTES = 64 * 1024  # below it are the pipe to the worker and a few imports, not samples
FEWEST_TICKS = 10  # of the kernel's clock, a hundredth of a second each


@dataclass(frozen=True)
class Reading:
    """One process at one moment. `threads` holds `None` for a thread that could not be read."""

    at_s: float
    activity: proc.Activity
    pid: int
    threads: dict[int, proc.Scheduled | None]
    io: proc.ReadCounts | None

    @property
    def main(self) -> proc.Scheduled | None:
        """The main thread."""
        return self.threads.get(self.pid)

    def without(self, apart: Collection[int]) -> Reading:
        """The same without some of its threads; page faults and ticks stay those of all."""
        if not apart:
            return self
        return replace(self, threads={thread: found for thread, found in self.threads.items() if thread not in apart})


def read_process(root: str, pid: int, clock: Callable[[], float]) -> Reading | None:
    """Read a process once, in about 50 microseconds; `None` when it is gone, or cannot be read."""
    folder = f"{root}/{pid}"
    return _read(folder, pid, clock, lambda: dict(_threads(f"{folder}/task")))


def read_thread(root: str, thread: int, clock: Callable[[], float]) -> Reading | None:
    """Read a thread of this process as if it were a process; `None` when it is gone, or cannot be read."""
    folder = f"{root}/self/task/{thread}"
    return _read(folder, thread, clock, lambda: {thread: _scheduled(folder)})


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
    except (OSError, ValueError, LookupError):  # it ended meanwhile, or this /proc is none of Linux's
        return None


@dataclass
class Sums:
    """Over all processes and intervals. `wall_s` adds up their times; `clock_s` is one clock's, however many there are.

    No difference below 0 is let in: a counter that fell belongs to another thread of the same number.
    """

    wall_s: float = 0.0
    clock_s: float = 0.0
    run_s: float = 0.0
    wait_s: float = 0.0
    others_s: float = 0.0
    runnable_s: float = 0.0
    user_ticks: int = 0
    system_ticks: int = 0
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

    def system_share(self) -> float | None:
        """The part of the CPU time that the kernel took; `None` where too little was used to tell."""
        ticks = self.user_ticks + self.system_ticks
        return self.system_ticks / ticks if ticks >= FEWEST_TICKS else None

    def page_cache_hits(self) -> tuple[float | None, str]:
        """The share of the bytes asked for that no disk had to fetch, or why it is not known."""
        if not self.read_io:
            return None, "/proc/<pid>/io of the workers is not readable"
        if self.asked_bytes < FEWEST_READ_BYTES:
            return None, f"the workers read less than {FEWEST_READ_BYTES // 1024} KiB"
        return min(1.0, max(0.0, 1 - self.disk_bytes / self.asked_bytes)), ""

    def _add(self, before: Reading, after: Reading) -> float:
        """Add one interval and return its seconds; 0 where it cannot be used."""
        if before.activity.began_ticks != after.activity.began_ticks:
            return 0.0  # another process of the same number
        if before.main is None or after.main is None:
            self.incomplete = True
            return 0.0
        wall_s = after.at_s - before.at_s
        self.wall_s += wall_s
        self.run_s += max(0, after.main.run_ns - before.main.run_ns) / 1e9
        self.wait_s += max(0, after.main.wait_ns - before.main.wait_ns) / 1e9
        self.others_s += sum(_others_ns(before, after)) / 1e9
        self.runnable_s += runnable_s(before, after)
        self.user_ticks += max(0, after.activity.user_ticks - before.activity.user_ticks)
        self.system_ticks += max(0, after.activity.system_ticks - before.activity.system_ticks)
        self.threads += len(after.threads)
        self.intervals += 1
        self.minor_faults += max(0, after.activity.minor_faults - before.activity.minor_faults)
        self.major_faults += max(0, after.activity.major_faults - before.activity.major_faults)
        if before.io and after.io:
            self.read_io = True
            self.asked_bytes += max(0, after.io.asked_bytes - before.io.asked_bytes)
            self.disk_bytes += max(0, after.io.disk_bytes - before.io.disk_bytes)
        return wall_s


def _threads(folder: str) -> Iterator[tuple[int, proc.Scheduled | None]]:
    for name in os.listdir(folder):  # noqa: PTH208 - half the cost of a Path per thread
        yield int(name), _scheduled(f"{folder}/{name}")


def _scheduled(folder: str) -> proc.Scheduled | None:
    text = proc.read_text(f"{folder}/schedstat")
    return proc.parse_schedstat(text) if text else None


def _others_ns(before: Reading, after: Reading) -> Iterator[int]:
    """CPU time of each thread but the main one; one that was born meanwhile began at 0."""
    for thread, now in after.threads.items():
        if thread != after.pid and now is not None:
            then = before.threads.get(thread)
            yield max(0, now.run_ns - (then.run_ns if then else 0))


def runnable_s(before: Reading, after: Reading, counts: Callable[[int, int], bool] = lambda *_: True) -> float:
    """How long threads ran or were ready to, all together; `counts` chooses among them by process and thread."""
    found_ns = 0
    for thread, now in after.threads.items():
        if now is not None and counts(after.pid, thread):
            then = before.threads.get(thread)
            found_ns += max(0, now.run_ns + now.wait_ns - (then.run_ns + then.wait_ns if then else 0))
    return found_ns / 1e9
