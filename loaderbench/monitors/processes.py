"""CPU, memory and disk reads of a process tree, on any system; cheapest on Linux."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import psutil

from loaderbench.monitors import proc
from loaderbench.monitors.gauges import read_gauges


@dataclass(frozen=True)
class TreeReading:
    """Sums over a process tree, and what the gauges read of it.

    `cpu_s` keeps what the dead have used; `read_bytes` is `None` where it is hidden.
    """

    cpu_s: float
    rss_bytes: int
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
            return proc.ProcessStat(times.user + times.system, process.memory_info().rss)
        except psutil.Error:
            return None

    def read_bytes(self, pid: int) -> int | None:  # noqa: ARG002 - psutil has the sum of cached and uncached reads only
        """Return `None`: what came from disk is not told apart."""
        return None

    def pss_bytes(self, pid: int) -> int | None:  # noqa: ARG002 - Linux alone has it
        """Return `None`: only Linux shares out shared pages."""
        return None

    def _process(self, pid: int) -> psutil.Process:
        if pid not in self._known:
            self._known[pid] = psutil.Process(pid)
        return self._known[pid]


class TreeMonitor:
    """Adds up a process tree, looking for new processes only now and then."""

    def __init__(self, root: int, reader: ProcessReader | None = None) -> None:
        self._root = root
        self._reader: ProcessReader = reader or (LinuxReader() if proc.available() else PsutilReader())
        self._cpu_s: dict[int, float] = {}
        self._read_bytes: dict[int, int] = {}
        self._alive: list[int] = [root]

    def look_for_processes(self) -> None:
        """Find the processes that came since; dear enough for once a second."""
        self._alive = self._reader.tree(self._root)

    def watch(self, pids: Sequence[int]) -> None:
        """Read the root and these, whatever else is below it."""
        self._alive = [self._root, *pids]

    @property
    def below(self) -> Sequence[int]:
        """The known processes but the root."""
        return self._alive[1:]

    def read(self, with_disk: bool) -> TreeReading:
        """Read CPU time, memory and gauges of the known processes, and their disk reads when asked to."""
        rss_bytes = 0
        for pid in self._alive:
            if stat := self._reader.stat(pid):
                self._cpu_s[pid] = stat.cpu_s
                rss_bytes += stat.rss_bytes
            if with_disk and (found := self._reader.read_bytes(pid)) is not None:
                self._read_bytes[pid] = found
        disk = sum(self._read_bytes.values()) if self._read_bytes else None
        return TreeReading(sum(self._cpu_s.values()), rss_bytes, disk, read_gauges(self._alive))

    def pss_bytes(self) -> int | None:
        """Read the proportional memory of all; `None` when none tells."""
        found = [self._reader.pss_bytes(pid) for pid in self._alive]
        known = [size for size in found if size is not None]
        return sum(known) if known else None
