"""Readings of CPU and memory between two batches of the user's loop, a few times a second."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from loaderbench.environment import quota_periods
from loaderbench.monitors import MachineWatch, PythonThreads, Sample, TreeMonitor, WorkerWatch
from loaderbench.records import BusyThread

MAX_SAMPLES = 2_000


@dataclass
class ResourceSamples:
    """All readings of a steady state, except in its pauses. If there are too many, every second one is dropped."""

    taken: list[Sample] = field(default_factory=list)
    workers: WorkerWatch = field(default_factory=WorkerWatch)
    main_process: WorkerWatch = field(default_factory=WorkerWatch)
    machine: MachineWatch = field(default_factory=lambda: MachineWatch(quota_periods))
    busy_thread: BusyThread | None = None
    pss_bytes: int | None = None
    pauses_s: list[float] = field(default_factory=list)
    _is_paused: bool = False
    _every: int = 1
    _turn: int = 0
    _threads: PythonThreads = field(default_factory=PythonThreads)
    _tree: TreeMonitor = field(default_factory=lambda: TreeMonitor(os.getpid()))

    def take(self, pids: Sequence[int], senders: Collection[int] = ()) -> None:
        """Read each process once; costs some ten microseconds per process. `senders` are threads that send batches."""
        self.workers.read(pids, senders=senders)
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
        self._threads.begin()

    def resume(self) -> None:
        """Count again after a pause."""
        if self._is_paused:
            self._is_paused = False
            self.main_process.read([os.getpid()])
            self.machine.resume()
            self._threads.begin()

    def take_last(self, pids: Sequence[int]) -> None:
        """Read this process with all its threads, and the machine as a whole: too costly to do every time.

        The time until `resume` does not count. Workers that were read only once, because each reading had to wait for
        the GIL, are read again.
        """
        self.main_process.read([os.getpid()])
        self.machine.look()
        self.busy_thread = self._threads.busiest()
        if self.workers.states() is None:
            self.workers.read(pids)
        self.main_process.pause()
        self._is_paused = True
        self.pauses_s.append(time.perf_counter())

    def read_memory(self, pids: Sequence[int]) -> None:
        """Read proportional memory (PSS) and swapped-out memory of all processes; takes milliseconds per process."""
        self.workers.read_memory(pids)
        self.main_process.read_memory([os.getpid()])
        self._tree.watch(pids)
        self.pss_bytes = self._tree.pss_bytes()
