"""CPU time, memory and disk reads of a process tree, on any system. Cheapest on Linux."""

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
    """Sums over a process tree, and the gauges' values.

    `cpu_s` and `read_bytes` include ended processes. Each is `None` if the system hides it.
    """

    cpu_s: float | None
    rss_bytes: int | None
    read_bytes: int | None
    gauges: Mapping[str, float] = field(default_factory=dict)


class ProcessReader(Protocol):
    """Reads one process."""

    def tree(self, root: int) -> list[int]:
        """Return the process and its descendants."""
        ...

    def stat(self, pid: int) -> proc.ProcessStat | None:
        """Return CPU time and resident memory; `None` if the process has ended."""
        ...

    def read_bytes(self, pid: int) -> int | None:
        """Return the bytes read from disk; `None` if not available."""
        ...

    def pss_bytes(self, pid: int) -> int | None:
        """Return the PSS; `None` if not available."""
        ...


class LinuxReader:
    """Reads `/proc`."""

    tree = staticmethod(proc.process_tree)
    stat = staticmethod(proc.read_stat)
    read_bytes = staticmethod(proc.read_read_bytes)
    pss_bytes = staticmethod(proc.read_pss_bytes)


class PsutilReader:
    """Reads through psutil. `Process` objects are cached, because a new one has no history."""

    def __init__(self) -> None:
        self._known: dict[int, psutil.Process] = {}

    def tree(self, root: int) -> list[int]:
        """Return the process and its descendants."""
        try:
            return [root, *(child.pid for child in self._process(root).children(recursive=True))]
        except psutil.Error:
            return [root]

    def stat(self, pid: int) -> proc.ProcessStat | None:
        """Return CPU time and resident memory; `None` if the process has ended."""
        try:
            process = self._process(pid)
            times = process.cpu_times()
            waited_s = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
            return proc.ProcessStat(times.user + times.system, process.memory_info().rss, waited_s)
        except psutil.Error:
            return None

    def read_bytes(self, pid: int) -> int | None:  # noqa: ARG002 - psutil adds cached and uncached reads
        """Return `None`: disk reads are not reported separately."""
        return None

    def pss_bytes(self, pid: int) -> int | None:  # noqa: ARG002 - only Linux has PSS
        """Return `None`: only Linux reports PSS."""
        return None

    def _process(self, pid: int) -> psutil.Process:
        if pid not in self._known:
            self._known[pid] = psutil.Process(pid)
        return self._known[pid]


SOON_S = 2.0
"""A parent waits for an ended child within this time, or is assumed never to."""


class EndedProcesses:
    """CPU time of ended processes, kept until the system adds it to a parent's.

    If only some processes of a tree are watched, the time of a parent's other children is mixed in, and all time is
    kept.
    """

    def __init__(self) -> None:
        self._kept_s = 0.0
        self._awaiting_parent: list[tuple[float, float]] = []
        self._new: list[float] = []
        self._counted_at_s = time.monotonic()

    @property
    def cpu_s(self) -> float:
        """CPU seconds not included in a parent's."""
        return self._kept_s + sum(left_s for _, left_s in self._awaiting_parent)

    def add(self, cpu_s: float) -> None:
        """Add a process that ended since the last count."""
        self._new.append(cpu_s)

    def count_in_tree(self, waited_s: float) -> None:
        """Drop the time that parents have waited for since the last count.

        Keep time that no parent waits for within `SOON_S`.
        """
        now_s, still = time.monotonic(), list[tuple[float, float]]()
        for at_s, left_s in [*self._awaiting_parent, *((now_s, new_s) for new_s in self._new)]:
            given_s = min(left_s, waited_s)
            waited_s -= given_s
            if now_s - at_s > SOON_S:
                self._kept_s += left_s - given_s
            elif left_s > given_s:
                still.append((at_s, left_s - given_s))
        self._awaiting_parent, self._new = still, []

    def count_watched(self, waited_s: float) -> None:
        """Keep all time, plus the time used since the last reading: at most one CPU per process."""
        now_s, seen_s = time.monotonic(), sum(self._new)
        unseen_s = min(max(0.0, waited_s - seen_s), len(self._new) * (now_s - self._counted_at_s))
        self._kept_s += seen_s + unseen_s
        self._new, self._counted_at_s = [], now_s


class TreeMonitor:
    """Adds up a process tree, and searches for new processes only now and then.

    A process that starts and ends between two searches is never seen. Once its parent has waited for it, the system
    adds its CPU time and reads to the parent's. `has_waited` is true if a parent has waited for a child since the
    reading before the last.
    """

    def __init__(self, root: int, reader: ProcessReader | None = None) -> None:
        self._root = root
        self._reader: ProcessReader = reader or (LinuxReader() if proc.available() else PsutilReader())
        self._used: dict[int, proc.ProcessStat] = {}
        self._read_bytes: dict[int, int] = {}
        self._most_read_bytes: int | None = None
        self._ended, self._is_known = EndedProcesses(), False
        self._is_complete, self._lock = True, threading.Lock()
        self._alive: list[int] = [root]
        self.has_waited = False

    def look_for_processes(self) -> None:
        """Search for new processes. Cheap enough for once a second, not more often."""
        self._watch_only(self._reader.tree(self._root))

    def watch(self, pids: Sequence[int]) -> None:
        """Read only the root and these processes."""
        self._is_complete = False
        self._watch_only([self._root, *pids])

    def _watch_only(self, pids: list[int]) -> None:
        """Forget ended processes, because a loop can start thousands of workers."""
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
        return 0.0 if used is None else used.cpu_s + (used.waited_cpu_s if self._is_complete else 0.0)

    @property
    def below(self) -> Sequence[int]:
        """The known descendants of the root."""
        return self._alive[1:]

    def read(self, with_disk: bool) -> TreeReading:
        """Read CPU time, memory and gauges of the known processes, and their disk reads if `with_disk` is true."""
        with self._lock:
            return self._read(with_disk)

    def _read(self, with_disk: bool) -> TreeReading:
        """Parents come before their children, so no time is counted twice."""
        rss_bytes: int | None = None
        waited_s = 0.0
        for pid in self._alive:
            stat, before = self._reader.stat(pid), self._used.get(pid)
            if before and (stat is None or stat.cpu_s < before.cpu_s):  # ended, or its pid was reused
                self._end(pid)
                before = None
            if stat is not None:
                waited_s += max(0.0, stat.waited_cpu_s - before.waited_cpu_s) if before else 0.0
                self._used[pid], self._is_known = stat, True
                rss_bytes = (rss_bytes or 0) + stat.rss_bytes
            if with_disk and (read_bytes := self._reader.read_bytes(pid)) is not None:
                self._read_bytes[pid] = read_bytes
        self.has_waited = waited_s > 0
        (self._ended.count_in_tree if self._is_complete else self._ended.count_watched)(waited_s)
        cpu_s = self._ended.cpu_s + sum(map(self._cpu_s, self._used)) if self._is_known else None
        return TreeReading(cpu_s, rss_bytes, self._sum_of_reads(), read_gauges(self._alive))

    def _sum_of_reads(self) -> int | None:
        """The largest sum so far. The sum drops briefly if a process ends after its parent was read."""
        if self._read_bytes:
            self._most_read_bytes = max(self._most_read_bytes or 0, sum(self._read_bytes.values()))
        return self._most_read_bytes

    def pss_bytes(self) -> int | None:
        """Read the PSS of all known processes; `None` if none is available."""
        sizes = [self._reader.pss_bytes(pid) for pid in self._alive]
        known = [size for size in sizes if size is not None]
        return sum(known) if known else None
