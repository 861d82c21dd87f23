"""Limits and counters of this process's cgroups, version 1 or 2.

The limits of all ancestor groups apply too: the lowest limit counts. Source: the kernel's `admin-guide/cgroup-v2.rst`
(`cpu.max`, `memory.max`, `pids.max`) and `scheduler/sched-bwc.rst` (v1 quota).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MEMBERSHIP, MOUNT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_UNLIMITED_BYTES = 1 << 60  # v1 writes "no limit" as the largest multiple of a page


@dataclass(frozen=True)
class Limits:
    """The lowest CPU and memory limits; `None` for no limit."""

    cpus: float | None = None
    memory_bytes: int | None = None


def read_limits(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> Limits:
    """Read the limits that apply to this process. Without cgroups, there are none."""
    cpus: list[float] = []
    memory: list[int] = []
    for folder in _groups(membership, mount):
        cpus += _cpus(folder)
        memory += _memory(folder)
    return Limits(min(cpus, default=None), min(memory, default=None))


def quota_periods(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> dict[str, tuple[int, int]]:
    """Periods of the CPU quota since its cgroup was created, and the number of throttled ones, by the cgroup's folder.

    Groups without a quota are left out.
    """
    counts = {str(folder): _periods(folder / "cpu.stat") for folder in _groups(membership, mount)}
    return {folder: found for folder, found in counts.items() if found[0]}


def memory_left_bytes(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> int | None:
    """Bytes that can still be used under the memory limits; `None` without a limit.

    Cached files (`inactive_file`) count as unused.
    """
    left = []
    for folder in _groups(membership, mount):
        used = _words(folder / "memory.current") or _words(folder / "memory.usage_in_bytes")
        words = _words(folder / "memory.stat")
        counts = dict(zip(words[::2], words[1::2], strict=False))
        cached = int(counts.get("total_inactive_file", counts.get("inactive_file", 0)))
        left += [max(0, limit - max(0, int(used[0]) - cached)) for limit in _memory(folder) if used]
    return min(left, default=None)


def process_limit(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> int | None:
    """The highest number of processes and threads in this cgroup or an ancestor; `None` without a limit."""
    limits = [word for folder in _groups(membership, mount) for word in _words(folder / "pids.max") if word.isdigit()]
    return min(map(int, limits), default=None)


def refused_processes(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> int | None:
    """How often this cgroup or an ancestor refused a new process or thread; `None` without a counter."""
    events = [_words(folder / "pids.events") for folder in _groups(membership, mount)]
    return max((int(words[1]) for words in events if len(words) > 1 and words[1].isdigit()), default=None)


def oom_kills(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> int | None:
    """Processes that the OOM killer ended in this cgroup and its ancestors; `None` without a counter."""
    counts = [int(events["oom_kill"]) for folder in _groups(membership, mount) for events in _events(folder) if events]
    return max(counts, default=None)


def _events(folder: Path) -> Iterator[dict[str, str]]:
    """Event counts of a cgroup: version 2 has them in `memory.events`, version 1 in `memory.oom_control`."""
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
    """The folder of each cgroup of this process, and of its ancestors; none on a system without cgroups."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        for root in [mount / controllers, *(mount / name for name in controllers.split(","))]:
            inside = root / path.lstrip("/")
            # in a container, the path is the host's, and the mount shows this group as the root
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
    limits = _words(folder / "memory.max") + _words(folder / "memory.limit_in_bytes")
    return [int(word) for word in limits if word.isdigit() and int(word) < _UNLIMITED_BYTES]


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []
