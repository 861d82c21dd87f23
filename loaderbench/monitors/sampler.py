"""A thread that samples the monitors about ten times a second during a trial, and metrics over its samples."""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from loaderbench.monitors.blocked import Blocked
from loaderbench.monitors.gauges import Moment, between
from loaderbench.monitors.gpu import GpuMonitor, GpuReading
from loaderbench.monitors.gpu_thread import GpuThread
from loaderbench.monitors.process_tree import TreeMonitor, TreeReading

INTERVAL_S = 0.1
SLOW_EVERY = 10  # readings between searches for new processes and reads of disk counters
EARLY = (0, 1, 2, 4, 7)  # further readings with a search for processes: workers start in the first second


@dataclass(frozen=True)
class Sample:
    """The monitors' readings at one moment of a monotonic clock."""

    at_s: float
    tree: TreeReading
    shm_bytes: int | None

    @property
    def gauges(self) -> Moment:
        """The gauges' values and their time."""
        return self.at_s, self.tree.gauges


def cpu_percent(samples: Sequence[Sample], cpus_allotted: float, pauses_s: Sequence[float] = ()) -> float | None:
    """CPU time of the process tree as a percentage of the time of all available CPUs; `None` without two readings.

    `pauses_s` are times in ascending order. Time between two readings with a pause between them does not count, unless
    there is no other.
    """
    known = [(one.at_s, one.tree.cpu_s) for one in samples if one.tree.cpu_s is not None]
    within = [pair for pair in pairwise(known) if bisect(pauses_s, pair[0][0]) == bisect(pauses_s, pair[1][0])]
    parts = within or list(pairwise(known))
    wall_s = sum(after_s - before_s for (before_s, _), (after_s, _) in parts)
    used_s = sum(after_s - before_s for (_, before_s), (_, after_s) in parts)
    return max(0.0, 100 * used_s / wall_s / cpus_allotted) if wall_s > 0 else None


def series(samples: Sequence[Sample], cpus_allotted: float) -> Iterator[tuple[float, str, float]]:
    """Points of a timeline: time, metric and value."""
    for before, sample in pairwise(samples):
        percent = cpu_percent([before, sample], cpus_allotted)
        if percent is not None:
            yield sample.at_s, "cpu_percent_of_allotted", percent
        if sample.tree.rss_bytes is not None:
            yield sample.at_s, "rss_bytes", sample.tree.rss_bytes
        if sample.shm_bytes is not None:
            yield sample.at_s, "shm_bytes", sample.shm_bytes
        for name, value in between(before.gauges, sample.gauges):
            yield sample.at_s, name, value


@dataclass(frozen=True)
class Sampling:
    """The samples of one trial.

    `root` is its main process, and `cpu_share` the monitors' CPU use as a share of one core. `looks` say what its
    processes were blocked on, and when.
    """

    root: int
    samples: Sequence[Sample]
    pss_bytes: int | None
    cpu_share: float
    looks: Sequence[tuple[float, Blocked]] = ()
    gpus: Sequence[GpuReading] = ()

    def blocked_on(self, pids: Collection[int], began_s: float, ended_s: float) -> dict[str, float] | None:
        """What these processes or threads were blocked on between two times, as shares.

        If there are too few samples between them, all samples of the trial count. `None` if these are too few.
        """
        inside = [look for at_s, look in self.looks if began_s <= at_s <= ended_s]
        return _together(inside).shares(pids) or _together([look for _, look in self.looks]).shares(pids)


def _together(looks: Iterable[Blocked]) -> Blocked:
    found = Blocked()
    for look in looks:
        found.add(look)
    return found


class Sampler:
    """Samples the process tree under `root` from `start` to `stop`."""

    def __init__(self, root: int, gpu_monitor: GpuMonitor) -> None:
        self._root = root
        self._tree = TreeMonitor(root)
        self._gpus = GpuThread(gpu_monitor)
        self._samples: list[Sample] = []
        self._pss_bytes: int | None = None
        self._looks: list[tuple[float, Blocked]] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loaderbench-monitors", daemon=True)
        self._shm_before = _shm_used_bytes()
        self._busy_s = 0.0
        self._began_s = time.monotonic()

    def start(self) -> None:
        """Start sampling. If no thread can be started, there are no samples."""
        with suppress(RuntimeError):
            self._thread.start()
        self._gpus.begin()

    def read_memory(self) -> None:
        """Read PSS, which is too slow for a measured window.

        Call this after the window, while all processes are alive.
        """
        self._tree.look_for_processes()
        self._pss_bytes = self._tree.pss_bytes()

    def stop(self) -> Sampling:
        """Stop the thread and return its samples."""
        self._done.set()
        self._gpus.end()
        if self._thread.ident is not None:
            self._thread.join()
        wall_s = max(time.monotonic() - self._began_s, INTERVAL_S)
        cpu_share = (self._busy_s + self._gpus.cpu_s) / wall_s
        readings = list(self._gpus.readings)
        return Sampling(self._root, self._samples, self._pss_bytes, cpu_share, self._looks, readings)

    def _run(self) -> None:
        turn = 0
        while not self._done.is_set():
            if turn in EARLY or turn % SLOW_EVERY == 0:
                self._tree.look_for_processes()
            self._samples.append(self._sample(with_disk=turn % SLOW_EVERY == 0))
            if self._tree.has_waited:
                self._tree.look_for_processes()
            self._busy_s = time.thread_time()
            turn += 1
            self._done.wait(INTERVAL_S)

    def _sample(self, with_disk: bool) -> Sample:
        tree = self._tree.read(with_disk)
        blocked = Blocked()
        blocked.look_at_threads(self._root)
        blocked.look(self._tree.below)
        self._looks.append((time.monotonic(), blocked))
        used = _shm_used_bytes()
        shm = None if used is None or self._shm_before is None else max(0, used - self._shm_before)
        return Sample(time.monotonic(), tree, shm)


def _shm_used_bytes() -> int | None:
    """Bytes in use in /dev/shm, by all programs; `None` if there is no /dev/shm."""
    try:
        stat = os.statvfs("/dev/shm")
    except (OSError, AttributeError):
        return None
    return (stat.f_blocks - stat.f_bfree) * stat.f_frsize
