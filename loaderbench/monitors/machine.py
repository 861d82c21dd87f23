"""CPU use of all programs on a process's CPUs, to find out whether other programs take the CPU time it lacks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import TypeVar

import psutil

from loaderbench import host_memory
from loaderbench.cpu_lists import allowed_cpus
from loaderbench.monitors import proc
from loaderbench.ranks import found_ranks, rank_in, this_rank
from loaderbench.records import MachineUse, Reasons
from loaderbench.records.words import sum_if_all_known

FEWEST_S = 0.2  # the kernel counts in hundredths of a second
_TRACKER = "resource_tracker"
NO_SWAP = "this system has no swap space, or does not count swap-ins"
_IDLE = ("idle", "iowait")
_COUNTED_ELSEWHERE = ("guest", "guest_nice")  # included in user and nice


Periods = Mapping[str, tuple[int, int]]
"""Periods of a CPU quota so far, and the number of throttled ones, by the folder of the cgroup."""


@dataclass(frozen=True)
class ProgramUse:
    """CPU seconds so far by rank (its process ID), and the number of child processes and of ranks on this machine."""

    cpu_s_by_rank: Mapping[int, float]
    processes: int
    ranks: int = 1

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all ranks so far."""
        return sum(self.cpu_s_by_rank.values())

    def since(self, before: ProgramUse) -> float:
        """CPU seconds since an earlier reading, without ranks that have ended."""
        used = (cpu_s - before.cpu_s_by_rank.get(pid, 0.0) for pid, cpu_s in self.cpu_s_by_rank.items())
        return sum(max(0.0, cpu_s) for cpu_s in used)


@dataclass(frozen=True)
class _Reading:
    at_s: float
    busy_s: float | None
    own: ProgramUse
    periods: Periods
    huge_faults: int | None
    swap_ins: proc.SwapIns | None


_Part = tuple[_Reading, _Reading]
_Count = TypeVar("_Count", int, float)


class MachineWatch:
    """Reads the machine's CPU use, and the `periods` of a quota, at the start and end of one or more parts of time.

    `own_use` returns this program's use. `cpus` are the CPUs to read, by default those available to this process.
    """

    def __init__(
        self,
        periods: Callable[[], Periods] = dict,
        own_use: Callable[[], ProgramUse] | None = None,
        cpus: Sequence[int] | None = None,
    ) -> None:
        self._periods, self._own_use = periods, own_use or use_of_this_program
        self._cpus = allowed_cpus() if cpus is None else cpus
        self._began: _Reading | None = None
        self._last: _Reading | None = None
        self._parts = list[_Part]()  # before the current one
        self._processes, self._ranks = 0, 1

    def begin(self) -> None:
        """Start counting."""
        self._began, self._last, self._parts = self._read(), None, []
        self._processes, self._ranks = self._began.own.processes, self._began.own.ranks

    def resume(self) -> None:
        """Start another part. The time since the latest `look` does not count."""
        self._parts = self._all_parts()
        self._began, self._last = self._read(), None

    def look(self) -> None:
        """Read the counters. `use` covers each part of time from its start to the last call in it."""
        self._last = self._read()
        self._processes = max(self._processes, self._last.own.processes)
        self._ranks = max(self._ranks, self._last.own.ranks)

    def why_not(self) -> str:
        """Why `use` returns `None`."""
        if self._began is not None and self._began.busy_s is None:
            return "/proc is not there, or has no times of these CPUs"
        return "the steady state was too short for the kernel's clock"

    def use(self) -> MachineUse | None:
        """The use in all parts; `None` if they are too short, or if the system reports nothing."""
        parts = self._all_parts()
        wall_s = sum(last.at_s - began.at_s for began, last in parts)
        busy = sum_if_all_known(_difference(began.busy_s, last.busy_s) for began, last in parts)
        if wall_s < FEWEST_S or busy is None:
            return None
        throttled = _throttled_share(parts)
        reasons: Reasons = {"throttled_share": "no cgroup CPU limit"} if throttled is None else {}
        huge_faults = sum_if_all_known(_difference(began.huge_faults, last.huge_faults) for began, last in parts)
        if huge_faults is None:
            reasons["huge_faults_per_s"] = "the kernel does not count huge pages"
        available = host_memory.available_bytes()
        if available is None:
            reasons["available_bytes"] = "this system does not report available memory"
        swapped_in_bytes, swap_faults = map(sum_if_all_known, zip(*starmap(_swapped_in, parts), strict=True))
        if swapped_in_bytes is None:
            reasons |= dict.fromkeys(("swapped_in_bytes_per_s", "swap_faults_per_s"), NO_SWAP)
        return MachineUse(
            cpus=len(self._cpus),
            own_cpus=sum(last.own.since(began.own) for began, last in parts) / wall_s,
            busy_cpus=min(float(len(self._cpus)), busy / wall_s),
            throttled_share=throttled,
            processes=self._processes,
            ranks=self._ranks,
            huge_faults_per_s=_per_s(huge_faults, wall_s),
            swapped_in_bytes_per_s=_per_s(swapped_in_bytes, wall_s),
            swap_faults_per_s=_per_s(swap_faults, wall_s),
            available_bytes=available,
            not_measured=reasons,
        )

    def _all_parts(self) -> list[_Part]:
        """The parts that have an end, with the current one."""
        current = [] if self._began is None or self._last is None else [(self._began, self._last)]
        return [*self._parts, *current]

    def _read(self) -> _Reading:
        counts = proc.read_text("/proc/vmstat")
        swap_ins = proc.parse_swap_ins(counts) if proc.has_swap(proc.read_text("/proc/meminfo")) else None
        huge_faults = proc.parse_huge_faults(counts)
        return _Reading(time.monotonic(), busy_s(self._cpus), self._own_use(), self._periods(), huge_faults, swap_ins)


def _throttled_share(parts: Sequence[_Part]) -> float | None:
    """The largest share of throttled periods of a cgroup; `None` without a quota, or if no period has passed."""
    groups = {group for began, _ in parts for group in began.periods}
    shares = (_throttled_share_of(group, parts) for group in groups)
    return max((share for share in shares if share is not None), default=None)


def _throttled_share_of(group: str, parts: Sequence[_Part]) -> float | None:
    known = [
        (began.periods[group], last.periods[group])
        for began, last in parts
        if group in began.periods.keys() & last.periods.keys()
    ]
    passed, throttled = (sum(last[at] - began[at] for began, last in known) for at in (0, 1))
    return throttled / passed if passed > 0 else None


def _difference(began: _Count | None, last: _Count | None) -> _Count | None:
    return None if began is None or last is None else last - began


def _swapped_in(began: _Reading, last: _Reading) -> tuple[int | None, int | None]:
    """Bytes that came back from swap between two readings, and how many pages of them faults had asked for."""
    before, after = began.swap_ins, last.swap_ins
    if before is None or after is None:
        return None, None
    return (after.pages - before.pages) * proc.PAGE_BYTES, after.by_faults - before.by_faults


def _per_s(number: int | None, wall_s: float) -> float | None:
    return None if number is None else number / wall_s


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
        return ProgramUse({os.getpid(): mine_s + sum(map(_cpu_s, children))}, len(children))
    below = proc.process_tree(os.getpid())[1:]
    used = _cpu_with_children(below)
    trackers = sum(_TRACKER in proc.read_text(f"/proc/{pid}/cmdline") for pid in below)
    own = ProgramUse({os.getpid(): mine_s + sum(used)}, len(used) - trackers)
    return of_all([own, *map(use_of, other_ranks())])


def use_of_ranks(pids: Sequence[int]) -> ProgramUse:
    """The use of this process and the other ranks among `pids`, as one program."""
    others = [pid for pid in pids if pid != os.getpid()] if proc.available() else []
    return of_all([use_of_this_program(), *map(use_of, others)])


def use_of(pid: int) -> ProgramUse:
    """The use of a process and its descendants, including the CPU time of children that were waited for."""
    pids = proc.process_tree(pid)
    return ProgramUse({pid: sum(_cpu_with_children(pids))}, len(pids) - 1)


def _cpu_with_children(pids: Sequence[int]) -> list[float]:
    """CPU seconds of each process that still exists, and of its children that it waited for."""
    texts = (proc.read_text(f"/proc/{pid}/stat") for pid in pids)
    return [proc.parse_cpu_with_children(text) for text in texts if text]


def of_all(ranks: Sequence[ProgramUse]) -> ProgramUse:
    """The ranks of one training, added up as one program."""
    cpu_s = {pid: cpu_s for one in ranks for pid, cpu_s in one.cpu_s_by_rank.items()}
    return ProgramUse(cpu_s, sum(one.processes for one in ranks), len(ranks))


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
    not_others = (None, this_rank())  # a shell can pass this rank's variables to other programs, such as `tee`
    return [pid for pid, env in known if rank_in(env) not in not_others and env.get("MASTER_PORT") == port]


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
