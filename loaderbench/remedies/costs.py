"""What a change takes more of than the baseline, and what it saves, as measured."""

from __future__ import annotations

from loaderbench.records import Configuration

_MEMORY = (
    ("gpu_memory_used_bytes", "GPU memory"),
    ("pss_bytes", "host memory"),
    ("shm_peak_bytes", "shared memory"),
)
_MIB = 1 << 20
_CPU_POINTS = 5


def costs(before: Configuration, after: Configuration) -> tuple[str, ...]:
    """What it takes more of: worker processes, memory, CPU time."""
    return _differences(before, after, many="more", much="more")


def savings(before: Configuration, after: Configuration) -> tuple[str, ...]:
    """What it takes less of."""
    return _differences(after, before, many="fewer", much="less")


def _differences(less: Configuration, more: Configuration, *, many: str, much: str) -> tuple[str, ...]:
    said = []
    workers = _number(more.config.get("num_workers")) - _number(less.config.get("num_workers"))
    if workers > 0:
        said.append(f"{workers:.0f} {many} worker process{'es' if workers > 1 else ''}")
    for name, label in _MEMORY:
        low, high = getattr(less, name), getattr(more, name)
        if low is not None and high is not None and high - low > _MIB:
            said.append(f"{(high - low) / _MIB:,.0f} MiB {much} {label}")
    if less.cpu_percent_of_allotted is not None and more.cpu_percent_of_allotted is not None:
        points = more.cpu_percent_of_allotted - less.cpu_percent_of_allotted
        if points >= _CPU_POINTS:
            said.append(f"{points:.0f} percentage points {much} of the allotted CPUs")
    return tuple(said)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
