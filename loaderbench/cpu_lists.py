"""The CPUs that a process may use, and sets of CPUs in the notation of Linux and `taskset`: `0-15,32-47`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence


def usable_cores(pid: int = 0) -> int:
    """The number of CPUs that a process may run on, as `allowed_cpus` lists them."""
    return len(allowed_cpus(pid))


def allowed_cpus(pid: int = 0) -> Sequence[int]:
    """The CPU numbers in a process's affinity. The default is this process, also used if the other one has ended."""
    if not hasattr(os, "sched_getaffinity"):
        return range(os.cpu_count() or 1)
    try:
        return sorted(os.sched_getaffinity(pid))
    except OSError:
        return sorted(os.sched_getaffinity(0))


def cpu_list(cpus: Iterable[int]) -> str:
    """Format a set of CPUs."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


def cpus_of(text: str) -> set[int]:
    """Parse the result of `cpu_list`."""
    ends = [part.partition("-") for part in text.split(",") if part]
    return {cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)}


def allowed_cpu_list() -> str | None:
    """The CPUs that this process and its children may use; `None` if the system does not say."""
    return cpu_list(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
