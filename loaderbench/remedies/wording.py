"""Wording of a measured change: its rates, its gain, its cost, and why it is not recommended."""

from __future__ import annotations

from loaderbench.loaders import worker_count
from loaderbench.records import Configuration, Interval, Standing
from loaderbench.statistics.intervals import excludes_one
from loaderbench.statistics.judging import SMALL
from loaderbench.statistics.ratios import times


def why_not(ratio: Interval, rounds: int) -> tuple[Standing, str]:
    """Why a change whose interval does not lie above 1 is not recommended, after so many rounds."""
    if excludes_one(ratio):
        return "already_ok", f"it was slower: {times(ratio)}"
    if ratio.hi is not None and ratio.hi <= SMALL:
        return "already_ok", f"no gain of more than {(SMALL - 1) * 100:.0f}%: {times(ratio)}"
    holds = "comes from one round alone" if ratio.hi is None else "holds both a gain and a loss"
    advice = f"more rounds (--rounds {max(2 * rounds, 6)}) or a quieter machine would decide"
    return "not_checked", f"undecided: {times(ratio)} {holds}; {advice}"


def evidence(label: str, found: Configuration) -> str:
    """The rate of one configuration, with its interval."""
    return f"{label}: {_rate(found.samples_per_s)}"


def _rate(interval: Interval | None) -> str:
    if interval is None:
        return "not measured"
    spread = "" if interval.lo is None else f" ({interval.lo:,.0f}\N{EN DASH}{interval.hi:,.0f})"
    return f"{interval.est:,.0f}{spread} samples/s"


def listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


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
    workers = (worker_count(more.config, {}) or 0) - (worker_count(less.config, {}) or 0)
    if workers > 0:
        said.append(f"{workers} {many} worker process{'es' if workers > 1 else ''}")
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
