"""Readers of Linux's `/proc`, at the lowest cost: one small file per process and reading. Parsers take text.

Source: proc(5) of the Linux man-pages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True)
class ProcessStat:
    """CPU seconds since a process's start (including its ended threads) and its resident memory.

    `waited_cpu_s` is the CPU time of its ended children that it waited for.
    """

    cpu_s: float
    rss_bytes: int
    waited_cpu_s: float = 0.0


@dataclass(frozen=True)
class Activity:
    """Whether a process is alive, its start time (clock ticks since boot), and its resource use since then.

    `user_ticks` and `system_ticks` cover all its threads, `waited_ticks` its ended children that it waited for.
    """

    alive: bool
    began_ticks: int
    minor_faults: int
    major_faults: int
    user_ticks: int = 0
    system_ticks: int = 0
    waited_ticks: int = 0


@dataclass(frozen=True)
class Scheduled:
    """How long one thread has run, and how long it has waited in a run queue."""

    run_ns: int
    wait_ns: int


@dataclass(frozen=True)
class SwapIns:
    """Pages of all programs that came back from swap so far. The kernel read ahead those that no fault asked for."""

    pages: int
    by_faults: int


@dataclass(frozen=True)
class SwappedOut:
    """Memory of one process in swap. `proportional_bytes` divides each shared page, and leaves out shared memory."""

    all_bytes: int
    proportional_bytes: int


@dataclass(frozen=True)
class ReadCounts:
    """Bytes returned by read(2) and similar calls (including pipes), and bytes fetched from disk."""

    asked_bytes: int
    disk_bytes: int


def parse_stat(text: str) -> ProcessStat:
    """Parse `/proc/<pid>/stat`. The command can contain any character, so fields are counted after its last bracket."""
    fields = text[text.rindex(")") + 2 :].split()
    own, waited = (sum(map(int, fields[first : first + 2])) / TICKS_PER_S for first in (11, 13))
    return ProcessStat(own, int(fields[21]) * PAGE_BYTES, waited)


def parse_cpu_with_children(text: str) -> float:
    """CPU seconds of a process and of its children that it waited for, from `/proc/<pid>/stat`."""
    fields = text[text.rindex(")") + 2 :].split(maxsplit=16)
    return sum(map(int, fields[11:15])) / TICKS_PER_S


def parse_activity(text: str) -> Activity:
    """Parse the remaining fields of `/proc/<pid>/stat`. A zombie is not alive: its counters no longer change."""
    fields = text[text.rindex(")") + 2 :].split(maxsplit=20)
    alive, began, minor, major = fields[0] not in "ZX", int(fields[19]), int(fields[7]), int(fields[9])
    waited = int(fields[13]) + int(fields[14])
    return Activity(alive, began, minor, major, int(fields[11]), int(fields[12]), waited)


def parse_last_cpu(text: str) -> int:
    """The number of the CPU on which a thread last ran, from `/proc/<pid>/task/<tid>/stat`."""
    return int(text[text.rindex(")") + 2 :].split()[36])


def parse_schedstat(text: str) -> Scheduled | None:
    """Parse `/proc/<pid>/task/<tid>/schedstat`; `None` for zeros, which a kernel without these statistics writes.

    Source: sched-stats.rst of the kernel's documentation.
    """
    run_ns, wait_ns, timeslices = map(int, text.split())
    return Scheduled(run_ns, wait_ns) if run_ns or wait_ns or timeslices else None


def parse_times_blocked(text: str) -> int | None:
    """Voluntary context switches of the main thread, from `/proc/<pid>/status`; `None` if missing."""
    match = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.MULTILINE)
    return int(match[1]) if match else None


def parse_cpu_numbers(text: str) -> list[int]:
    """The CPU numbers in `/proc/stat`, in order. Offline CPUs are missing."""
    return [int(number) for number in re.findall(r"^cpu(\d+) ", text, re.MULTILINE)]


def parse_huge_faults(text: str) -> int | None:
    """Page faults of all programs served with a huge page, from `/proc/vmstat`; `None` if they are not counted."""
    match = re.search(r"^thp_fault_alloc (\d+)", text, re.MULTILINE)
    return int(match[1]) if match else None


def parse_swap_ins(text: str) -> SwapIns | None:
    """Swap-ins of all programs, from `/proc/vmstat`; `None` if the kernel does not count them.

    Pages from a compressed cache (zswap) and pages of zeros are counted apart from those read from a device.
    """
    counts = {name: int(count) for name, count in re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE)}
    if "pswpin" not in counts:
        return None
    pages = sum(counts.get(name, 0) for name in ("pswpin", "zswpin", "swpin_zero"))
    return SwapIns(pages, max(0, pages - counts.get("swap_ra", 0)))


def has_swap(text: str) -> bool:
    """Whether the system has swap space, from `/proc/meminfo`."""
    match = re.search(r"^SwapTotal:\s+(\d+)", text, re.MULTILINE)
    return match is not None and int(match[1]) > 0


def parse_swapped_out(text: str) -> SwappedOut | None:
    """Memory in swap, from `/proc/<pid>/smaps_rollup`; `None` if the kernel does not say."""
    sizes = {name: int(kb) * 1024 for name, kb in re.findall(r"^(Swap|SwapPss):\s+(\d+) kB", text, re.MULTILINE)}
    return SwappedOut(sizes["Swap"], sizes["SwapPss"]) if len(sizes) == 2 else None


def parse_vm_swap(text: str) -> int | None:
    """Bytes of a process in swap, without shared memory, from `/proc/<pid>/status`; `None` if the kernel does not say.

    Takes microseconds, while `smaps_rollup` walks all pages.
    """
    match = re.search(r"^VmSwap:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def parse_read_counts(text: str) -> ReadCounts:
    """Parse `/proc/<pid>/io`. Pages of mapped files count as disk bytes, but not as bytes returned by a read."""
    counts = dict(line.split(": ") for line in text.splitlines())
    return ReadCounts(int(counts["rchar"]), int(counts["read_bytes"]))


def parse_read_bytes(text: str) -> int:
    """Bytes fetched from disk, from `/proc/<pid>/io`. Reads served by the page cache are not included."""
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("read_bytes:"))


def parse_pss_bytes(text: str) -> int:
    """PSS from `/proc/<pid>/smaps_rollup`: each shared page is divided among the processes that share it."""
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))


def parse_lock_waits(text: str) -> list[tuple[int, int]]:
    """Pairs of the holder of a file lock and a process that waits for it, from `/proc/locks`."""
    pairs, holder = [], 0
    for line in text.splitlines():
        _, *words = line.split()
        waits = words[:1] == ["->"]
        pid = int(words[4 if waits else 3])
        if waits:
            pairs.append((holder, pid))
        else:
            holder = pid
    return pairs


def read_stat(pid: int) -> ProcessStat | None:
    """The CPU time and memory of a process; `None` if it has ended."""
    text = read_text(f"/proc/{pid}/stat")
    return parse_stat(text) if text else None


def is_sleeping(pid: int) -> bool:
    """Whether the main thread of a process sleeps, for whatever reason."""
    text = read_text(f"/proc/{pid}/stat")
    return bool(text) and text[text.rindex(")") + 2] in "SD"


def read_read_bytes(pid: int) -> int | None:
    """Bytes that a process fetched from disk; `None` if it has ended or belongs to another user."""
    text = read_text(f"/proc/{pid}/io")
    return parse_read_bytes(text) if text else None


def read_pss_bytes(pid: int) -> int | None:
    """The PSS of a process; `None` if it has ended or belongs to another user.

    Takes milliseconds, so it must not be called during a measurement.
    """
    text = read_text(f"/proc/{pid}/smaps_rollup")
    return parse_pss_bytes(text) if text else None


def lock_holders(pids: Collection[int]) -> frozenset[int]:
    """The processes that hold a file lock for which one of `pids` waits. A stopped process waits for none."""
    try:
        waits = parse_lock_waits(read_text("/proc/locks"))
    except (ValueError, IndexError):  # a format unlike that of current kernels
        return frozenset()
    return frozenset(holder for holder, waiter in waits if waiter in pids)


def process_tree(root: int) -> list[int]:
    """The process and its descendants, from the kernel's lists of children."""
    tree, to_see = [], [root]
    while to_see:
        pid = to_see.pop()
        tree.append(pid)
        to_see += children_of(pid)
    return tree


def children_of(pid: int) -> list[int]:
    """The children of all threads of a process; empty if it has ended."""
    texts = (read_text(f"/proc/{pid}/task/{thread}/children") for thread in threads_of(pid))
    return [int(child) for text in texts for child in text.split()]


def last_cpus(pid: int) -> dict[int, int]:
    """The number of the CPU on which each thread of a process last ran, by thread ID; empty if it has ended."""
    texts = {thread: read_text(f"/proc/{pid}/task/{thread}/stat") for thread in threads_of(pid)}
    return {thread: parse_last_cpu(text) for thread, text in texts.items() if text}


def threads_of(pid: int, root: str = "/proc") -> list[int]:
    """The thread IDs of a process; empty if it has ended or they cannot be listed. `root` is for tests."""
    try:
        return list(map(int, os.listdir(f"{root}/{pid}/task")))  # noqa: PTH208 - half the cost of a Path per thread
    except OSError:
        return []


def environment_of(pid: int) -> dict[str, str]:
    """The initial environment of a process; empty if it is not readable."""
    pairs = (entry.partition("=") for entry in read_text(f"/proc/{pid}/environ").split("\0"))
    return {name: value for name, equals, value in pairs if equals}


def available() -> bool:
    """Whether this kernel has the `/proc` files that this module reads."""
    return Path("/proc/self/task").is_dir() and Path(f"/proc/self/task/{os.getpid()}/children").exists()


def read_text(path: str) -> str:
    """The text of a file; empty if it does not exist, belongs to another user, or its process has ended."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - read ten times a second
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
