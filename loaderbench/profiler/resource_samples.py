"""Readings of CPU, memory and devices between two batches of the user's loop, a few times a second."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from loaderbench.environment import quota_periods
from loaderbench.monitors import GpuMonitor, GpuReading, MachineWatch, TreeMonitor, WorkerWatch

MAX_SAMPLES = 2_000


@dataclass(frozen=True)
class ResourceSample:
    """CPU seconds and resident bytes of this process and its workers, and the devices, at a moment in seconds."""

    at_s: float
    cpu_s: float
    rss_bytes: int
    gpus: tuple[GpuReading, ...] = ()
    gauges: Mapping[str, float] = field(default_factory=dict)


@dataclass
class ResourceSamples:
    """All samples of a steady state; when there are too many, every second one is kept from then on."""

    taken: list[ResourceSample] = field(default_factory=list)
    workers: WorkerWatch = field(default_factory=WorkerWatch)
    main_process: WorkerWatch = field(default_factory=WorkerWatch)
    machine: MachineWatch = field(default_factory=lambda: MachineWatch(quota_periods))
    pss_bytes: int | None = None
    _every: int = 1
    _turn: int = 0
    _tree: TreeMonitor = field(default_factory=lambda: TreeMonitor(os.getpid()))

    def take(self, pids: Sequence[int], monitor: GpuMonitor) -> None:
        """ResourceSample once; costs some ten microseconds a process, and what the driver takes for a device."""
        self.workers.read(pids)
        self._turn += 1
        if self._turn % self._every:
            return
        self._tree.watch(pids)
        tree = self._tree.read(with_disk=False)
        gpus = tuple(monitor.read())
        self.taken.append(ResourceSample(time.perf_counter(), tree.cpu_s, tree.rss_bytes, gpus, tree.gauges))
        if len(self.taken) > MAX_SAMPLES:
            self.taken = self.taken[::2]
            self._every *= 2

    def begin(self) -> None:
        """Count from now on what is too costly to be read at every sample."""
        self.main_process.read([os.getpid()])
        self.machine.begin()

    def take_wide(self) -> None:
        """Read this process with all its threads, and all programs together: too costly for every sample."""
        self.main_process.read([os.getpid()])
        self.machine.look()

    def read_memory(self, pids: Sequence[int]) -> None:
        """Read proportional memory, of the workers and of all; takes milliseconds a process."""
        self.workers.read_memory(pids)
        self._tree.watch(pids)
        self.pss_bytes = self._tree.pss_bytes()

    def cpu_percent(self, cpus_allotted: float) -> float | None:
        """CPU time over the wall time of all allotted CPUs; `None` for fewer than two samples."""
        if len(self.taken) < 2:
            return None
        first, last = self.taken[0], self.taken[-1]
        return 100 * (last.cpu_s - first.cpu_s) / (last.at_s - first.at_s) / cpus_allotted
