"""Description of the machine of a run, read without importing torch."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import psutil

from loaderbench import host_memory
from loaderbench.cpu_lists import allowed_cpu_list, allowed_cpus, usable_cores
from loaderbench.environment.cgroups import Limits, read_limits
from loaderbench.records import Environment, Gpu, Reasons

_PACKAGES = (
    "torch", "torchvision", "pillow", "numpy", "pandas", "plotly", "psutil", "nvidia-ml-py", "loaderbench",
)  # fmt: skip


def cpus_allotted(limits: Limits | None = None) -> float:
    """CPUs available to this process: min(affinity, cgroup quota). A quota can be fractional."""
    return _allotted(usable_cores(), limits or read_limits())


@dataclass(frozen=True)
class Allotted:
    """CPUs, memory under a cgroup's limit, and the size of `/dev/shm`."""

    cpus: float
    memory_bytes: int | None
    shm_bytes: int | None


def allotted_to(pid: int) -> Allotted:
    """What another process may use, as far as this one can read its limits."""
    limits, shm = read_limits(Path(f"/proc/{pid}/cgroup")), Path(f"/proc/{pid}", "root/dev/shm")
    return Allotted(_allotted(usable_cores(pid), limits), limits.memory_bytes, _shm_total_bytes(str(shm)))


def _allotted(affinity: int, limits: Limits) -> float:
    return min(float(affinity), limits.cpus or float(affinity))


def describe_machine(
    start_method: str, gpus: tuple[Gpu, ...], not_measured: Reasons, *, gpus_of_driver: int = 0
) -> Environment:
    """Combine what the operating system reports with the GPUs that a trial's process and the driver found."""
    limits = read_limits()
    reasons = dict(not_measured)
    memory, shm = host_memory.total_bytes(), _shm_total_bytes()
    model, files = _cpu_model(), open_files_limit()
    for name, value in (("memory_total_bytes", memory), ("cpu_model", model), ("open_files_limit", files)):
        if value is None:
            reasons[name] = "not reported by the operating system"
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
        versions=dict(_versions()),
        start_method=start_method,
        gpus=gpus,
        not_measured=reasons,
        gpus_of_driver=gpus_of_driver,
        cpus_allowed=allowed_cpu_list(),
    )


def busy_percent(seconds: float) -> float | None:
    """CPU time that all programs use in the next seconds, in percent of the available CPUs; `None` if unknown."""
    try:
        each = psutil.cpu_percent(seconds, percpu=True)
    except OSError:  # no /proc
        return None
    cpus = allowed_cpus()
    known = len(each) == os.cpu_count() and max(cpus) < len(each)
    return sum(each[cpu] for cpu in cpus) / len(cpus) if known else None


@cache
def _versions() -> Mapping[str, str]:
    """Package versions, read once: the record of a running script is saved repeatedly, alongside its own work."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


@cache
def _cpu_model() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine() or None


def _shm_total_bytes(folder: str = "/dev/shm") -> int | None:
    try:
        return psutil.disk_usage(folder).total
    except OSError:
        return None


def open_files_limit() -> int | None:
    """The limit on open file descriptors of this process; `None` if there is none, or the system reports none."""
    return _open_files_limits()[0]


def most_open_files() -> int | None:
    """The hard limit, up to which a process may raise its own limit; `None` as for `open_files_limit`."""
    return _open_files_limits()[1]


def _open_files_limits() -> tuple[int | None, int | None]:
    try:
        import resource
    except ImportError:  # Windows
        return None, None
    soft, hard = (
        None if limit == resource.RLIM_INFINITY else limit for limit in resource.getrlimit(resource.RLIMIT_NOFILE)
    )
    return soft, hard
