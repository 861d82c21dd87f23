"""What DataLoader workers were doing between readings: on a CPU, ready but without one, or blocked.

Linux only: elsewhere nothing is told, and `why_not` says so. Source: proc(5), and sched-stats.rst of the kernel. The
kernel adds time in a run queue when the thread leaves it, so that sums are clipped at the end, and no single reading.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from loaderbench.monitors import proc
from loaderbench.records import Reasons, WorkerStates

FEWEST_READ_BYTES = 64 * 1024  # below it are the pipe to the worker and a few imports, not samples


class WorkerWatch:
    """Adds up what worker processes did between readings; processes may come and go (each epoch starts new ones).

    What a process did before its first reading and after its last is not seen. `root` and `clock` are for tests.
    """

    def __init__(self, root: str = "/proc", clock: Callable[[], float] = time.monotonic) -> None:
        self._root, self._clock = root, clock
        self._before: dict[int, _Reading] = {}
        self._sums = _Sums()
        self._count = 0
        self._pss_bytes: int | None = None
        self._why_no_pss = "the workers' memory was not read"

    def read(self, pids: Sequence[int]) -> None:
        """Read each process once, in about 50 microseconds. One that is gone, or left out, begins anew if it returns.

        Nothing is raised for what cannot be read: this is called from inside a user's training loop.
        """
        now = {pid: found for pid in pids if (found := self._reading(pid))}
        self._sums.add([(self._before[pid], found) for pid, found in now.items() if pid in self._before])
        self._count = max(self._count, len(now))
        self._before = now

    def pause(self) -> None:
        """Leave out what happens from now until the next reading (an epoch boundary)."""
        self._before = {}

    def read_memory(self, pids: Sequence[int]) -> None:
        """Read proportional memory and keep the largest sum. Costs milliseconds per process."""
        texts = [proc.read_text(f"{self._root}/{pid}/smaps_rollup") for pid in pids]
        sizes = [proc.parse_pss_bytes(text) for text in texts if "Pss:" in text]
        if sizes:
            self._pss_bytes = max(self._pss_bytes or 0, sum(sizes))
        else:
            self._why_no_pss = "no worker told its proportional memory"

    def states(self) -> WorkerStates | None:
        """Sum up; `None` where no time was seen, and `why_not` says why."""
        sums = self._sums
        if sums.wall_s <= 0:
            return None
        on_cpu = min(1.0, sums.run_s / sums.wall_s)
        run_queue = min(1.0 - on_cpu, sums.wait_s / sums.wall_s)
        hits, why_no_hits = sums.page_cache_hits()
        reasons: Reasons = {"page_cache_hit_share": why_no_hits} if hits is None else {}
        if self._pss_bytes is None:
            reasons["pss_bytes"] = self._why_no_pss
        return WorkerStates(
            on_cpu_share=on_cpu,
            run_queue_share=run_queue,
            blocked_share=1.0 - on_cpu - run_queue,
            count=self._count,
            other_threads_cpu_share=sums.others_s / sums.wall_s,
            threads_per_worker=sums.threads / sums.intervals,
            page_cache_hit_share=hits,
            minor_faults_per_s=sums.minor_faults / sums.clock_s,
            major_faults_per_s=sums.major_faults / sums.clock_s,
            pss_bytes=self._pss_bytes,
            not_measured=reasons,
        )

    def why_not(self) -> str:
        """Why there are no states, as a clause; empty where there are."""
        if self._sums.wall_s > 0:
            return ""
        if not Path(self._root).is_dir():
            return "only Linux tells what a worker was doing"
        if self._sums.untold:
            return "this kernel keeps no scheduler statistics"
        return "no worker was read twice"

    def _reading(self, pid: int) -> _Reading | None:
        folder = f"{self._root}/{pid}"
        try:
            stat = proc.read_text(f"{folder}/stat")
            activity = proc.parse_activity(stat) if stat else None
            if activity is None or not activity.alive:
                return None
            at_s = self._clock()
            threads = dict(_threads(f"{folder}/task"))
            io = proc.read_text(f"{folder}/io")
            return _Reading(at_s, activity, pid, threads, proc.parse_read_counts(io) if io else None)
        except (OSError, ValueError, LookupError):  # it ended meanwhile, or this /proc is none of Linux's
            return None


@dataclass(frozen=True)
class _Reading:
    """One process at one moment. `threads` holds `None` for a thread of which nothing is told."""

    at_s: float
    activity: proc.Activity
    pid: int
    threads: dict[int, proc.Scheduled | None]
    io: proc.ReadCounts | None

    @property
    def main(self) -> proc.Scheduled | None:
        return self.threads.get(self.pid)


@dataclass
class _Sums:
    """Over all processes and intervals. `wall_s` adds up their times; `clock_s` is one clock's, however many there are.

    No difference below 0 is let in: a counter that fell belongs to another thread of the same number.
    """

    wall_s: float = 0.0
    clock_s: float = 0.0
    run_s: float = 0.0
    wait_s: float = 0.0
    others_s: float = 0.0
    threads: int = 0
    intervals: int = 0
    minor_faults: int = 0
    major_faults: int = 0
    asked_bytes: int = 0
    disk_bytes: int = 0
    read_io: bool = False
    untold: bool = False

    def add(self, pairs: Sequence[tuple[_Reading, _Reading]]) -> None:
        """Add the intervals between two readings of each process."""
        told = [self._add(before, after) for before, after in pairs]
        self.clock_s += max(told, default=0.0)

    def page_cache_hits(self) -> tuple[float | None, str]:
        """The share of the bytes asked for that no disk had to fetch, or why it is not known."""
        if not self.read_io:
            return None, "what the workers read cannot be read in /proc/<pid>/io"
        if self.asked_bytes < FEWEST_READ_BYTES:
            return None, f"the workers read less than {FEWEST_READ_BYTES // 1024} KiB"
        return min(1.0, max(0.0, 1 - self.disk_bytes / self.asked_bytes)), ""

    def _add(self, before: _Reading, after: _Reading) -> float:
        """Add one interval and return its seconds; 0 where it cannot be used."""
        if before.activity.began_ticks != after.activity.began_ticks:
            return 0.0  # another process of the same number
        if before.main is None or after.main is None:
            self.untold = True
            return 0.0
        wall_s = after.at_s - before.at_s
        self.wall_s += wall_s
        self.run_s += max(0, after.main.run_ns - before.main.run_ns) / 1e9
        self.wait_s += max(0, after.main.wait_ns - before.main.wait_ns) / 1e9
        self.others_s += sum(_others_ns(before, after)) / 1e9
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
        text = proc.read_text(f"{folder}/{name}/schedstat")
        yield int(name), proc.parse_schedstat(text) if text else None


def _others_ns(before: _Reading, after: _Reading) -> Iterator[int]:
    """CPU time of each thread but the main one; one that was born meanwhile began at 0."""
    for thread, now in after.threads.items():
        if thread != after.pid and now is not None:
            then = before.threads.get(thread)
            yield max(0, now.run_ns - (then.run_ns if then else 0))
