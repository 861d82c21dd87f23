"""Time slices: the trials of a round take turns on the machine, a tenth of a second each.

Covers the length of a slice, the messages between run and trial, the trial's side of a pause, and moving a resumed
trial to other CPUs. On a shared machine, one CPU can be slower than another for a second or two, and a resumed process
would stay on its CPU. Two busy threads must not be moved to the same CPU, which they would share until the kernel
separates them.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from loaderbench.monitors import proc
from loaderbench.recorder import Steps
from loaderbench.records import StageCost, WorkerStates
from loaderbench.runner.processes import signal_all
from loaderbench.runner.protocol import GO_ON, Ended

SHORTEST_SLICE_S = 0.1
LONGEST_SLICE_S = 1.0
GIVEN_SHARE = 0.005
"""Maximum share of a time slice gained from events between slices, such as a storage response or the end of a sleep."""


def slice_seconds(stages: Mapping[str, StageCost] | None, loads: WorkerStates | None) -> float | None:
    """Seconds of a time slice, from the cost of a sample; `None` if that is unknown or the slice would be too long.

    A sample that takes `wall` seconds, `w` of which it waits for something other than a CPU, is stopped while waiting
    with probability `w / wall`; on average half of the wait is then free, once per slice. `loads` are the states of the
    loading processes or threads.
    """
    costs = (stages or {}).values()
    cpu_s, wall_s = math.fsum(cost.cpu_s or 0.0 for cost in costs), math.fsum(cost.wall_s or 0.0 for cost in costs)
    if not wall_s or loads is None or not loads.on_cpu_share:
        return None
    waits_s = max(0.0, wall_s - cpu_s * (1 + loads.run_queue_share / loads.on_cpu_share))
    seconds = max(SHORTEST_SLICE_S, waits_s * waits_s / (2 * wall_s) / GIVEN_SHARE)
    return seconds if seconds <= LONGEST_SLICE_S else None


NUMBERS = 11  # seconds stopped, start of slices, index of the valid note, two notes of three, a late rank with its PID
_STOPPED, _BEGAN, _VALID, _NOTES, _EACH, _LATE = 0, 1, 2, 3, 3, 9


@dataclass(frozen=True)
class Note:
    """How many batches and samples were taken in the first `seconds` of the time slices."""

    batches: int
    samples: int
    seconds: float


class SharedCounters:
    """State that a run and a trial share in memory, because the trial can be stopped at any moment.

    Consists of `NUMBERS` doubles, with a clock that excludes the time in which the trial is stopped.
    """

    def __init__(self, memory: Any) -> None:
        self.memory = memory

    def now_s(self) -> float:
        """The monotonic clock minus the time in which the trial was stopped."""
        return time.monotonic() - float(self.memory[_STOPPED])

    def was_stopped(self, seconds: float) -> None:
        """Set the trial's clock back by `seconds`; the trial is stopped at the moment."""
        self.memory[_STOPPED] += seconds

    def begin(self) -> None:
        """Record the start of the first time slice."""
        self.memory[_BEGAN] = self.now_s()

    def note(self, batches: int, samples: int) -> None:
        """Write the other note, then make it the valid one, so no reader sees a partial note."""
        other = 1 - int(self.memory[_VALID])
        start = _NOTES + other * _EACH
        self.memory[start : start + _EACH] = (batches, samples, self.now_s() - self.memory[_BEGAN])
        self.memory[_VALID] = other

    def note_late(self, rank: int, pid: int) -> None:
        """Record that the other ranks wait for this rank, and its process ID."""
        self.memory[_LATE : _LATE + 2] = (rank, pid)

    def late(self) -> tuple[int, int] | None:
        """The rank that the others wait for, and its process ID; `None` if no rank is late."""
        rank, pid = self.memory[_LATE : _LATE + 2]
        return (int(rank), int(pid)) if pid else None

    def read(self) -> Note:
        """The last valid note."""
        start = _NOTES + int(self.memory[_VALID]) * _EACH
        batches, samples, seconds = self.memory[start : start + _EACH]
        return Note(int(batches), int(samples), seconds)


LOOK_S = 0.01  # seconds between checks for leave to end


def stop_workers(pids: Sequence[int]) -> None:
    """Stop the loader's workers, so they prefetch nothing while no batches are taken."""
    signal_all(pids, "SIGSTOP")


def take_slices(
    pipe: Connection, counters: SharedCounters, steps: Steps, *, cycle: int, workers: Sequence[int]
) -> None:
    """Continue the workers and take batches until asked to end; counters are updated per complete worker cycle."""
    is_running = pipe.recv() == GO_ON
    signal_all(workers, "SIGCONT")
    batches = samples = 0
    counters.begin()
    looked_s = counters.now_s()
    while is_running and steps.take():
        batches, samples = batches + 1, samples + steps.samples[-1]
        if batches % cycle == 0:
            counters.note(batches, samples)
        if counters.now_s() - looked_s > LOOK_S:
            looked_s = counters.now_s()
            is_running = not pipe.poll()
    if is_running:
        pipe.send(Ended())
        pipe.recv()


def move_to_next_cpus(pids: Iterable[int]) -> dict[int, Set[int]]:
    """Pin each thread of these processes to the next CPU that it may use.

    Returns the original affinity of each thread, for `allow_all`.
    """
    allowed: dict[int, Set[int]] = {}
    for pid in pids:
        for thread, last in proc.last_cpus(pid).items():
            with suppress(OSError):  # the thread has ended, or its affinity changed
                cpus = os.sched_getaffinity(thread)
                os.sched_setaffinity(thread, {next_cpu(cpus, last)})
                allowed[thread] = cpus
    return allowed


def next_cpu(cpus: Set[int], last: int) -> int:
    """The next CPU after `last`, wrapping around to the first."""
    return min((cpu for cpu in cpus if cpu > last), default=min(cpus))


def allow_all(allowed: Mapping[int, Set[int]]) -> None:
    """Restore the threads' affinity, now that they run."""
    for thread, cpus in allowed.items():
        with suppress(OSError):
            os.sched_setaffinity(thread, cpus)
