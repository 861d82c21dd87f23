"""Linux's `/proc`, as cheaply as it can be read: one small file per process and reading. Parsers take text.

Source: proc(5) of the Linux man-pages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True)
class ProcessStat:
    """CPU seconds since the start of a process (its dead threads included) and its resident memory.

    `waited_cpu_s` are those of processes that it started, that ended, and that it waited for.
    """

    cpu_s: float
    rss_bytes: int
    waited_cpu_s: float = 0.0


@dataclass(frozen=True)
class Activity:
    """Whether a process lives, when it began (clock ticks since boot), and what it used since then.

    `user_ticks` and `system_ticks` are of all its threads.
    """

    alive: bool
    began_ticks: int
    minor_faults: int
    major_faults: int
    user_ticks: int = 0
    system_ticks: int = 0


@dataclass(frozen=True)
class Scheduled:
    """How long one thread has run, and how long it has stood ready in a run queue without being given a CPU."""

    run_ns: int
    wait_ns: int


@dataclass(frozen=True)
class ReadCounts:
    """Bytes given by read(2) and its like (pipes among them), and bytes that a disk had to fetch."""

    asked_bytes: int
    disk_bytes: int


def parse_stat(text: str) -> ProcessStat:
    """Parse `/proc/<pid>/stat`. The command may hold anything: counting starts after its last bracket."""
    fields = text[text.rindex(")") + 2 :].split()
    own, waited = (sum(map(int, fields[first : first + 2])) / _TICKS_PER_S for first in (11, 13))
    return ProcessStat(own, int(fields[21]) * _PAGE_BYTES, waited)


def parse_cpu_with_children(text: str) -> float:
    """CPU seconds of a process and of those that it started and waited for, from `/proc/<pid>/stat`."""
    fields = text[text.rindex(")") + 2 :].split(maxsplit=16)
    return sum(map(int, fields[11:15])) / _TICKS_PER_S


def parse_activity(text: str) -> Activity:
    """Parse `/proc/<pid>/stat` for what `parse_stat` leaves. A zombie is dead: its counters stand still."""
    fields = text[text.rindex(")") + 2 :].split(maxsplit=20)
    alive, began, minor, major = fields[0] not in "ZX", int(fields[19]), int(fields[7]), int(fields[9])
    return Activity(alive, began, minor, major, int(fields[11]), int(fields[12]))


def parse_last_cpu(text: str) -> int:
    """The number of the CPU on which a thread last ran, of `/proc/<pid>/task/<tid>/stat`."""
    return int(text[text.rindex(")") + 2 :].split()[36])


def parse_schedstat(text: str) -> Scheduled | None:
    """Parse `/proc/<pid>/task/<tid>/schedstat`; `None` for the zeros of a kernel that keeps no such statistics.

    Source: sched-stats.rst of the kernel's documentation.
    """
    run_ns, wait_ns, timeslices = map(int, text.split())
    return Scheduled(run_ns, wait_ns) if run_ns or wait_ns or timeslices else None


def parse_times_blocked(text: str) -> int | None:
    """How often the main thread gave up its CPU to wait, of `/proc/<pid>/status`; `None` where that does not say."""
    found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else None


def parse_cpu_numbers(text: str) -> list[int]:
    """The numbers of the CPUs that `/proc/stat` counts, in its order: those that are offline are left out."""
    return [int(number) for number in re.findall(r"^cpu(\d+) ", text, re.MULTILINE)]


def parse_huge_faults(text: str) -> int | None:
    """Page faults of all programs that were given a huge page, of `/proc/vmstat`; `None` where they are not counted."""
    found = re.search(r"^thp_fault_alloc (\d+)", text, re.MULTILINE)
    return int(found[1]) if found else None


def parse_read_counts(text: str) -> ReadCounts:
    """Parse `/proc/<pid>/io`. Pages of mapped files are fetched from the disk without being asked for by a read."""
    found = dict(line.split(": ") for line in text.splitlines())
    return ReadCounts(int(found["rchar"]), int(found["read_bytes"]))


def parse_read_bytes(text: str) -> int:
    """Bytes fetched from a disk, of `/proc/<pid>/io`; what the page cache gave is not among them."""
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("read_bytes:"))


def parse_pss_bytes(text: str) -> int:
    """Proportional memory of `/proc/<pid>/smaps_rollup`: a shared page counts once over all who share it."""
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))


def parse_lock_waits(text: str) -> list[tuple[int, int]]:
    """Who holds the lock of a file, and who waits for it, of all of `/proc/locks`."""
    found, holder = [], 0
    for line in text.splitlines():
        _, *words = line.split()
        waits = words[:1] == ["->"]
        pid = int(words[4 if waits else 3])
        if waits:
            found.append((holder, pid))
        else:
            holder = pid
    return found


def read_stat(pid: int) -> ProcessStat | None:
    """Return `None` when the process is gone."""
    text = read_text(f"/proc/{pid}/stat")
    return parse_stat(text) if text else None


def read_read_bytes(pid: int) -> int | None:
    """Return `None` when the process is gone or belongs to another user."""
    text = read_text(f"/proc/{pid}/io")
    return parse_read_bytes(text) if text else None


def read_pss_bytes(pid: int) -> int | None:
    """Return `None` when the process is gone or belongs to another user. Takes milliseconds: never while measuring."""
    text = read_text(f"/proc/{pid}/smaps_rollup")
    return parse_pss_bytes(text) if text else None


def lock_holders(pids: Collection[int]) -> frozenset[int]:
    """The processes that hold the locks of files that these wait for; one that is stopped waits for none."""
    try:
        waits = parse_lock_waits(read_text("/proc/locks"))
    except (ValueError, IndexError):  # another format than that of today's kernels
        return frozenset()
    return frozenset(holder for holder, waiter in waits if waiter in pids)


def process_tree(root: int) -> list[int]:
    """The process and all below it, by the kernel's own lists of children."""
    found, to_see = [], [root]
    while to_see:
        pid = to_see.pop()
        found.append(pid)
        to_see += children_of(pid)
    return found


def children_of(pid: int) -> list[int]:
    """Those of all its threads; none of a process that is gone."""
    texts = (read_text(f"/proc/{pid}/task/{thread}/children") for thread in _threads(pid))
    return [int(child) for text in texts for child in text.split()]


def last_cpus(pid: int) -> dict[int, int]:
    """The number of the CPU on which each thread of a process last ran, by thread; none of a process that is gone."""
    texts = {int(thread): read_text(f"/proc/{pid}/task/{thread}/stat") for thread in _threads(pid)}
    return {thread: parse_last_cpu(text) for thread, text in texts.items() if text}


def _threads(pid: int) -> list[str]:
    """The numbers of its threads; none of a process that is gone."""
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - half the cost of a Path per thread
    except OSError:
        return []


def environment_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty where it may not be read."""
    pairs = (entry.partition("=") for entry in read_text(f"/proc/{pid}/environ").split("\0"))
    return {name: value for name, found, value in pairs if found}


def available() -> bool:
    """Whether this kernel has what is read here."""
    return Path("/proc/self/task").is_dir() and Path(f"/proc/self/task/{os.getpid()}/children").exists()


def read_text(path: str) -> str:
    """Return nothing when the file is not there, belongs to another user, or its process ended meanwhile."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - read ten times a second
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
