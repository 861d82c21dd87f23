"""CPU, memory and disk reads of a process tree, on any system; cheapest on Linux."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


class EndedProcesses:
    """The CPU time of processes that have ended, until the system counts it with that of a parent.

    If only some processes of a tree are watched, a parent has also waited for others, and all time is kept.
    """

    def __init__(self) -> None:
        self._kept_s = 0.0
        self._not_waited_for: list[tuple[float, float]] = []
        self._new: list[float] = []
        self._counted_at_s = time.monotonic()

    @property
    def cpu_s(self) -> float:
        """What is not counted with a parent."""
        return self._kept_s + sum(left_s for _, left_s in self._not_waited_for)

    def add(self, cpu_s: float) -> None:
        """One has ended since the last count."""
        self._new.append(cpu_s)

    def count_in_tree(self, waited_s: float) -> None:
        """Drop what parents have waited for since the last count; keep what they do not wait for soon."""
        now_s, still = time.monotonic(), list[tuple[float, float]]()
        for at_s, left_s in [*self._not_waited_for, *((now_s, new_s) for new_s in self._new)]:
            given_s = min(left_s, waited_s)
            waited_s -= given_s
            if now_s - at_s > SOON_S:
                self._kept_s += left_s - given_s
            elif left_s > given_s:
                still.append((at_s, left_s - given_s))
        self._not_waited_for, self._new = still, []

    def count_watched(self, waited_s: float) -> None:
        """Keep all, and what they may have used since they were last read: at most a CPU each."""
        now_s, seen_s = time.monotonic(), sum(self._new)
        unseen_s = min(max(0.0, waited_s - seen_s), len(self._new) * (now_s - self._counted_at_s))
        self._kept_s += seen_s + unseen_s
        self._new, self._counted_at_s = [], now_s


class TreeMonitor:
    """Adds up a process tree, looking for new processes only now and then.

    A process that ends between two looks was never seen. Once its parent has waited for it, the system counts its CPU
    time and its reads with those of the parent. `has_waited`: one was, since the reading before the last.
    """

    def __init__(self, root: int, reader: ProcessReader | None = None) -> None:
        self._root = root
        self._reader: ProcessReader = reader or (LinuxReader() if proc.available() else PsutilReader())
        self._used: dict[int, proc.ProcessStat] = {}
        self._read_bytes: dict[int, int] = {}
        self._most_read_bytes: int | None = None
        self._ended, self._is_known = EndedProcesses(), False
        self._is_whole, self._lock = True, threading.Lock()
        self._alive: list[int] = [root]
        self.has_waited = False

    def look_for_processes(self) -> None:
        """Find the processes that came since; dear enough for once a second."""
        self._watch_only(self._reader.tree(self._root))

    def watch(self, pids: Sequence[int]) -> None:
        """Read only the root and these."""
        self._is_whole = False
        self._watch_only([self._root, *pids])

    def _watch_only(self, pids: list[int]) -> None:
        """Forget all that have ended: a loop may start thousands of workers."""
        with self._lock:
            self._alive = pids
            for pid in (self._used.keys() | self._read_bytes.keys()) - set(pids):
                if self._reader.stat(pid) is None:
                    self._end(pid)

    def _end(self, pid: int) -> None:
        self._ended.add(self._cpu_s(pid))
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
        self.has_waited = waited_s > 0
        (self._ended.count_in_tree if self._is_whole else self._ended.count_watched)(waited_s)
        cpu_s = self._ended.cpu_s + sum(map(self._cpu_s, self._used)) if self._is_known else None
        return TreeReading(cpu_s, rss_bytes, self._sum_of_reads(), read_gauges(self._alive))

    def _sum_of_reads(self) -> int | None:
        """The sum falls for a moment if a process ends after its parent was read, so the largest one counts."""
        if self._read_bytes:
            self._most_read_bytes = max(self._most_read_bytes or 0, sum(self._read_bytes.values()))
        return self._most_read_bytes

    def pss_bytes(self) -> int | None:
        """Read the proportional memory of all; `None` when none tells."""
        found = [self._reader.pss_bytes(pid) for pid in self._alive]
        known = [size for size in found if size is not None]
        return sum(known) if known else None
