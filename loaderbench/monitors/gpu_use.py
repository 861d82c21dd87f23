"""What the readings of a GPU say of a window of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from loaderbench.monitors.gpu import GpuReading
from loaderbench.records import Gpu, GpuUse


@dataclass(frozen=True)
class Window:
    """A steady state, by the clock of the readings."""

    began_s: float
    ended_s: float


def gpu_use(gpu: Gpu, readings: Iterable[GpuReading], window: Window, why_not: Mapping[str, str]) -> GpuUse:
    """One device over a window; `why_not` is its monitor's, by the name of a reading."""
    own = [reading for reading in readings if reading.index == gpu.index]
    inside = [reading for reading in own if window.began_s <= reading.at_s <= window.ended_s]
    rates = [reading.utilization_percent for reading in inside if reading.utilization_percent is not None]
    used = [reading.memory_used_bytes for reading in inside if reading.memory_used_bytes is not None]
    busy = _busy_percent(own, window)
    found = GpuUse(
        gpu.index,
        gpu.uuid,
        utilization_percent=busy if busy is not None or not rates else fmean(rates),
        memory_used_bytes=max(used, default=None),
        memory_total_bytes=gpu.memory_total_bytes,
    )
    return _with_reasons(found, why_not)


def _with_reasons(found: GpuUse, why_not: Mapping[str, str]) -> GpuUse:
    """The same with a reason for each reading that is missing."""
    default = why_not.get("", "no NVML reading in the steady state")
    missing = [name for name, value in vars(found).items() if value is None]
    return replace(found, not_measured={name: why_not.get(name, default) for name in missing})


def _busy_percent(readings: Sequence[GpuReading], window: Window) -> float | None:
    """Mean of the dated periods, each by how much of it lies within the window; `None` where none does."""
    shares = [
        (min(period.to_s, window.ended_s) - max(period.from_s, window.began_s), period.percent)
        for reading in readings
        for period in reading.busy or ()
    ]
    inside = [(overlap_s, percent) for overlap_s, percent in shares if overlap_s > 0]
    total_s = sum(overlap_s for overlap_s, _ in inside)
    return sum(overlap_s * percent for overlap_s, percent in inside) / total_s if total_s else None


def gpu_series(readings: Iterable[GpuReading]) -> Iterator[tuple[float, str, float]]:
    """What a timeline shows: moment, metric and value."""
    for reading in readings:
        for period in reading.busy or ():
            yield period.to_s, f"gpu{reading.index}_utilization_percent", period.percent
        if reading.busy is None and reading.utilization_percent is not None:
            yield reading.at_s, f"gpu{reading.index}_utilization_percent", reading.utilization_percent
        if reading.memory_used_bytes is not None:
            yield reading.at_s, f"gpu{reading.index}_memory_used_bytes", reading.memory_used_bytes
