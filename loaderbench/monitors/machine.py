"""CPU use of all programs on a process's CPUs, to find out whether other programs take the CPU time it lacks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil

from loaderbench.cpu_lists import allowed_cpus
from loaderbench.monitors import proc
from loaderbench.ranks import found_ranks, rank_in, this_rank
from loaderbench.records import MachineUse, Reasons

FEWEST_S = 0.2  # the kernel counts in hundredths of a second
_TRACKER = "resource_tracker"
_IDLE = ("idle", "iowait")
_COUNTED_ELSEWHERE = ("guest", "guest_nice")  # included in user and nice


Periods = tuple[int, int]
"""Periods of a CPU quota so far, and the number of throttled ones."""


@dataclass(frozen=True)
class ProgramUse:
    """A program's CPU seconds so far, the number of its child processes, and its ranks on this machine."""

    cpu_s: float
    processes: int
    ranks: int = 1


@dataclass(frozen=True)
class _Reading:
    at_s: float
    busy_s: float | None
    own: ProgramUse
    periods: Periods | None
    huge_faults: int | None


class MachineWatch:
    """Reads the machine's CPU use at two moments, and the `periods` of a quota.

    `own_use` returns this program's use. `cpus` are the CPUs to read, by default those available to this process.
    """

    def __init__(
        self,
        periods: Callable[[], Periods | None] = lambda: None,
        own_use: Callable[[], ProgramUse] | None = None,
        cpus: Sequence[int] | None = None,
    ) -> None:
        self._periods, self._own_use = periods, own_use or use_of_this_program
        self._cpus = allowed_cpus() if cpus is None else cpus
        self._began: _Reading | None = None
        self._last: _Reading | None = None
        self._processes, self._ranks = 0, 1

    def begin(self) -> None:
        """Start counting."""
        self._began, self._last = self._read(), None
        self._processes, self._ranks = self._began.own.processes, self._began.own.ranks

    def look(self) -> None:
        """Read the counters. `use` covers the time from `begin` to the last call."""
        self._last = self._read()
        self._processes = max(self._processes, self._last.own.processes)
        self._ranks = max(self._ranks, self._last.own.ranks)

    def why_not(self) -> str:
        """Why `use` returns `None`."""
        if self._began is not None and self._began.busy_s is None:
            return "/proc is not there, or has no times of these CPUs"
        return "the steady state was too short for the kernel's clock"

    def use(self) -> MachineUse | None:
        """The use between the two readings; `None` if they are too close together, or if the system reports nothing."""
        began, last = self._began, self._last
        if began is None or last is None or last.at_s - began.at_s < FEWEST_S:
            return None
        if began.busy_s is None or last.busy_s is None:
            return None
        wall_s = last.at_s - began.at_s
        throttled = _throttled_share(began.periods, last.periods)
        reasons: Reasons = {"throttled_share": "no cgroup CPU limit"} if throttled is None else {}
        huge_faults = _difference(began.huge_faults, last.huge_faults)
        if huge_faults is None:
            reasons["huge_faults_per_s"] = "the kernel does not count huge pages"
        return MachineUse(
            cpus=len(self._cpus),
            own_cpus=max(0.0, last.own.cpu_s - began.own.cpu_s) / wall_s,
            busy_cpus=min(float(len(self._cpus)), (last.busy_s - began.busy_s) / wall_s),
            throttled_share=throttled,
            processes=self._processes,
            ranks=self._ranks,
            huge_faults_per_s=None if huge_faults is None else huge_faults / wall_s,
            not_measured=reasons,
        )

    def _read(self) -> _Reading:
        huge_faults = proc.parse_huge_faults(proc.read_text("/proc/vmstat"))
        return _Reading(time.monotonic(), busy_s(self._cpus), self._own_use(), self._periods(), huge_faults)


def _throttled_share(began: Periods | None, last: Periods | None) -> float | None:
    if began is None or last is None or last[0] <= began[0]:
        return None
    return (last[1] - began[1]) / (last[0] - began[0])


def _difference(began: int | None, last: int | None) -> int | None:
    return None if began is None or last is None else last - began


def busy_s(cpus: Sequence[int]) -> float | None:
    """Seconds that these CPUs were busy since boot, with any program.

    `None` if `/proc` is hidden from this process or numbers CPUs differently, as in some containers.
    """
    try:
        times = psutil.cpu_times(percpu=True)
        numbers = proc.parse_cpu_numbers(proc.read_text("/proc/stat")) or range(len(times))
    except OSError:
        return None
    known = dict(zip(numbers, times, strict=False))
    if not known.keys() >= set(cpus):
        return None
    return sum(
        value
        for one in (known[cpu] for cpu in cpus)
        for name, value in zip(one._fields, one, strict=True)
        if name not in (*_IDLE, *_COUNTED_ELSEWHERE)
    )


def use_of_this_program() -> ProgramUse:
    """The use of this process and its descendants, except Python's own resource trackers.

    The time of ended processes counts if their parents have waited for them. Other ranks of the same training on this
    machine, with their descendants, belong to the program.
    """
    mine_s = sum(os.times()[:4])
    if not proc.available():
        children = _children()
        return ProgramUse(mine_s + sum(map(_cpu_s, children)), len(children))
    below = proc.process_tree(os.getpid())[1:]
    used = _cpu_with_children(below)
    trackers = sum(_TRACKER in proc.read_text(f"/proc/{pid}/cmdline") for pid in below)
    own = ProgramUse(mine_s + sum(used), len(used) - trackers)
    return of_all([own, *map(use_of, other_ranks())])


def use_of_ranks(pids: Sequence[int]) -> ProgramUse:
    """The use of this process and the other ranks among `pids`, as one program."""
    others = [pid for pid in pids if pid != os.getpid()] if proc.available() else []
    return of_all([use_of_this_program(), *map(use_of, others)])


def use_of(pid: int) -> ProgramUse:
    """The use of a process and its descendants, including the CPU time of children that were waited for."""
    pids = proc.process_tree(pid)
    return ProgramUse(sum(_cpu_with_children(pids)), len(pids) - 1)


def _cpu_with_children(pids: Sequence[int]) -> list[float]:
    """CPU seconds of each process that still exists, and of its children that it waited for."""
    texts = (proc.read_text(f"/proc/{pid}/stat") for pid in pids)
    return [proc.parse_cpu_with_children(text) for text in texts if text]


def of_all(ranks: Sequence[ProgramUse]) -> ProgramUse:
    """The ranks of one training, added up as one program."""
    cpu_s, processes = sum(one.cpu_s for one in ranks), sum(one.processes for one in ranks)
    return ProgramUse(cpu_s, processes, len(ranks))


def other_ranks() -> Sequence[int]:
    """The other ranks of this training on the same CPUs; empty outside a distributed job.

    These are processes started by the same launcher. Without a launcher, the command that started the script provides
    them.
    """
    return [pid for pid in _started_by_launcher() or found_ranks() if _shares_cpus(pid)]


def _started_by_launcher() -> list[int]:
    if this_rank() is None:
        return []
    port, siblings = os.environ.get("MASTER_PORT"), proc.children_of(os.getppid())
    known = ((pid, proc.environment_of(pid)) for pid in siblings if pid != os.getpid())
    return [pid for pid, env in known if rank_in(env) is not None and env.get("MASTER_PORT") == port]


def is_alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.Error:
        return False


def _shares_cpus(pid: int) -> bool:
    """Whether a process can run on one of this process's CPUs. A launcher can give each rank separate CPUs."""
    try:
        return not set(os.sched_getaffinity(pid)).isdisjoint(allowed_cpus())
    except OSError:  # the process has ended
        return False


def _children() -> list[psutil.Process]:
    try:
        return psutil.Process().children(recursive=True)
    except (psutil.Error, OSError, IndexError):  # without /proc
        return []


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:  # the process has ended
        return 0.0
    return float(times.user + times.system)
