"""What a run was made on, read without importing torch.

A limit of a control group (version 1 or 2) anywhere above binds as much as one's own: the smallest counts. Source: the
kernel's `admin-guide/cgroup-v2.rst` (`cpu.max`, `memory.max`) and `scheduler/sched-bwc.rst` (v1 quota).
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psutil

from loaderbench import host_memory
from loaderbench.records import Environment, Gpu, Reasons

_PACKAGES = (
    "torch", "torchvision", "pillow", "numpy", "pandas", "plotly", "psutil", "nvidia-ml-py", "loaderbench",
)  # fmt: skip


def cpus_allotted(limits: Limits | None = None) -> float:
    """CPUs this process may use: min(affinity, cgroup quota). A quota may be a fraction."""
    limits = limits or read_limits()
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(float(affinity), limits.cpus or float(affinity))


def describe_machine(start_method: str, gpus: tuple[Gpu, ...], not_measured: Reasons) -> Environment:
    """Join what the operating system says with the devices that a trial's process saw."""
    limits = read_limits()
    reasons = dict(not_measured)
    memory, shm = host_memory.total_bytes(), _shm_total_bytes()
    model, files = _cpu_model(), _open_files_limit()
    for name, value in (("memory_total_bytes", memory), ("cpu_model", model), ("open_files_limit", files)):
        if value is None:
            reasons[name] = "the system does not say"
    if shm is None:
        reasons["shm_total_bytes"] = "no /dev/shm on this system"
    if limits.memory_bytes is None:
        reasons["memory_limit_bytes"] = "no cgroup memory limit"
    return Environment(
        cpus_allotted=cpus_allotted(limits),
        cpus_online=os.cpu_count() or 1,
        cpu_model=model,
        memory_total_bytes=memory,
        memory_limit_bytes=limits.memory_bytes,
        shm_total_bytes=shm,
        open_files_limit=files,
        platform=platform.platform(aliased=True, terse=True),
        python=platform.python_version(),
        versions=_versions(),
        start_method=start_method,
        gpus=gpus,
        not_measured=reasons,
    )


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _cpu_model() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine() or None


def _shm_total_bytes() -> int | None:
    try:
        return psutil.disk_usage("/dev/shm").total
    except OSError:
        return None


def _open_files_limit() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


_UNLIMITED_BYTES = 1 << 60  # v1 writes "no limit" as the largest multiple of a page


@dataclass(frozen=True)
class Limits:
    """The tightest limits; `None` where there is none."""

    cpus: float | None = None
    memory_bytes: int | None = None


def read_limits(membership: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> Limits:
    """Read the limits that bind this process. A machine without control groups has none."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return Limits()
    cpus: list[float] = []
    memory: list[int] = []
    for folder in _folders(lines, mount):
        cpus += _cpus(folder)
        memory += _memory(folder)
    return Limits(min(cpus, default=None), min(memory, default=None))


def quota_periods(
    membership: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> tuple[int, int] | None:
    """Periods of the CPU quota since its group was made, and in how many it was used up; `None` without a quota.

    Of several groups, the one that was held back most often.
    """
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return None
    found = [counts for folder in _folders(lines, mount) if (counts := _periods(folder / "cpu.stat"))[0]]
    return max(found, key=lambda counts: counts[1], default=None)


def process_limit(membership: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Processes and threads that this control group, or one above it, may hold; `None` without a limit."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return None
    found = [word for folder in _folders(lines, mount) for word in _words(folder / "pids.max") if word.isdigit()]
    return min(map(int, found), default=None)


def refused_processes(membership: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> int | None:
    """How often this control group, or one above it, refused a process or thread; `None` where nobody counts."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return None
    found = [_words(folder / "pids.events") for folder in _folders(lines, mount)]
    return max((int(words[1]) for words in found if len(words) > 1 and words[1].isdigit()), default=None)


def oom_kills(membership: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Processes that the out-of-memory killer ended in this group and those above; `None` where nobody counts."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return None
    counts = [int(events["oom_kill"]) for folder in _folders(lines, mount) for events in _events(folder) if events]
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


def _folders(lines: list[str], mount: Path) -> Iterator[Path]:
    """Each group this process is in and each group above it, for both versions."""
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
