"""Limits and counters of the control groups of this process, version 1 or 2.

A limit of a group anywhere above binds as much as one's own: the smallest counts. Source: the kernel's
`admin-guide/cgroup-v2.rst` (`cpu.max`, `memory.max`, `pids.max`) and `scheduler/sched-bwc.rst` (v1 quota).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MEMBERSHIP, MOUNT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_UNLIMITED_BYTES = 1 << 60  # v1 writes "no limit" as the largest multiple of a page


@dataclass(frozen=True)
class Limits:
    """The tightest limits; `None` where there is none."""

    cpus: float | None = None
    memory_bytes: int | None = None


def read_limits(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> Limits:
    """Read the limits that bind this process. A machine without control groups has none."""
    cpus: list[float] = []
    memory: list[int] = []
    for folder in _groups(membership, mount):
        cpus += _cpus(folder)
        memory += _memory(folder)
    return Limits(min(cpus, default=None), min(memory, default=None))


def quota_periods(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> tuple[int, int] | None:
    """Periods of the CPU quota since its group was made, and in how many it was used up; `None` without a quota.

    Of several groups, the one that was held back most often.
    """
    found = [counts for folder in _groups(membership, mount) if (counts := _periods(folder / "cpu.stat"))[0]]
    return max(found, key=lambda counts: counts[1], default=None)


def process_limit(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> int | None:
    """Processes and threads that this control group, or one above it, may hold; `None` without a limit."""
    found = [word for folder in _groups(membership, mount) for word in _words(folder / "pids.max") if word.isdigit()]
    return min(map(int, found), default=None)


def refused_processes(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> int | None:
    """How often this control group, or one above it, refused a process or thread; `None` where nobody counts."""
    found = [_words(folder / "pids.events") for folder in _groups(membership, mount)]
    return max((int(words[1]) for words in found if len(words) > 1 and words[1].isdigit()), default=None)


def oom_kills(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> int | None:
    """Processes that the out-of-memory killer ended in this group and those above; `None` where nobody counts."""
    counts = [int(events["oom_kill"]) for folder in _groups(membership, mount) for events in _events(folder) if events]
    return max(counts, default=None)


def _events(folder: Path) -> Iterator[dict[str, str]]:
    """Version 2 counts in `memory.events`, version 1 in `memory.oom_control`."""
    for name in ("memory.events", "memory.oom_control"):
        words = _words(folder / name)
        events = dict(zip(words[::2], words[1::2], strict=False))
        if events.get("oom_kill", "").isdigit():
            yield events


def _periods(file: Path) -> tuple[int, int]:
    words = _words(file)
    values = dict(zip(words[::2], words[1::2], strict=False))
    return int(values.get("nr_periods", 0)), int(values.get("nr_throttled", 0))


def _groups(membership: Path, mount: Path) -> Iterator[Path]:
    """The folder of each group this process is in and of each above it; none where the system has no such groups."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        for root in [mount / controllers, *(mount / name for name in controllers.split(","))]:
            inside = root / path.lstrip("/")
            # in a container the path is the host's and the mount shows this group as the root
            start = inside if inside.is_dir() else root
            while start.is_dir():
                yield start
                if start == root:
                    break
                start = start.parent


def _cpus(folder: Path) -> list[float]:
    quota, period = (*_words(folder / "cpu.max"), "", "")[:2]
    if not quota:
        quota = "".join(_words(folder / "cpu.cfs_quota_us"))
        period = "".join(_words(folder / "cpu.cfs_period_us"))
    if quota.isdigit() and period.isdigit() and int(period) > 0:
        return [int(quota) / int(period)]
    return []


def _memory(folder: Path) -> list[int]:
    found = _words(folder / "memory.max") + _words(folder / "memory.limit_in_bytes")
    return [int(word) for word in found if word.isdigit() and int(word) < _UNLIMITED_BYTES]


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []
