"""Readings of CPU and memory between two batches of the user's loop, a few times a second."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from loaderbench.environment import quota_periods
from loaderbench.monitors import MachineWatch, Sample, TreeMonitor, WorkerWatch

MAX_SAMPLES = 2_000


@dataclass
class ResourceSamples:
    """All readings of a steady state. When there are too many, every second one is dropped, now and later."""

    taken: list[Sample] = field(default_factory=list)
    workers: WorkerWatch = field(default_factory=WorkerWatch)
    main_process: WorkerWatch = field(default_factory=WorkerWatch)
    machine: MachineWatch = field(default_factory=lambda: MachineWatch(quota_periods))
    pss_bytes: int | None = None
    _every: int = 1
    _turn: int = 0
    _tree: TreeMonitor = field(default_factory=lambda: TreeMonitor(os.getpid()))

    def take(self, pids: Sequence[int]) -> None:
        """Read each process once; costs some ten microseconds per process."""
        self.workers.read(pids)
        self._turn += 1
        if self._turn % self._every:
            return
        self._tree.watch(pids)
        tree = self._tree.read(with_disk=False)
        self.taken.append(Sample(time.perf_counter(), tree, None))
        if len(self.taken) > MAX_SAMPLES:
            self.taken = self.taken[::2]
            self._every *= 2

    def begin(self) -> None:
        """Start counting what is too costly to read every time."""
        self.main_process.read([os.getpid()])
        self.machine.begin()

    def take_wide(self) -> None:
        """Read this process with all its threads, and the machine as a whole: too costly to do every time."""
        self.main_process.read([os.getpid()])
        self.machine.look()

    def read_memory(self, pids: Sequence[int]) -> None:
        """Read proportional memory (PSS) of the workers and of all processes; takes milliseconds per process."""
        self.workers.read_memory(pids)
        self._tree.watch(pids)
        self.pss_bytes = self._tree.pss_bytes()
