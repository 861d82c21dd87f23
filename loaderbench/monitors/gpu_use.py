"""GPU use over a window of time, from readings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean

from loaderbench.cuda_use import PeakMemory
from loaderbench.monitors.gpu import GpuReading
from loaderbench.records import CopySpeed, Gpu, GpuPerformance, GpuUse


@dataclass(frozen=True)
class Window:
    """A steady state on the clock of the readings. `s_per_sample` is the mean time per sample."""

    began_s: float
    ended_s: float
    s_per_sample: float | None = None


def gpu_use(
    gpu: Gpu,
    readings: Iterable[GpuReading],
    window: Window,
    why_not: Mapping[str, str],
    peaks: Sequence[PeakMemory] = (),
) -> GpuUse:
    """The use of one device in a window.

    `why_not` has the monitor's reasons by reading, `peaks` the process's memory peaks.
    """
    peak = next((peak for peak in peaks if peak.index == gpu.index), None)
    own = [reading for reading in readings if reading.index == gpu.index]
    inside = [reading for reading in own if window.began_s <= reading.at_s <= window.ended_s]
    busy, power_w = _busy_percent(own, window), _power_w(inside)
    s_per_sample = window.s_per_sample
    use = GpuUse(
        gpu.index,
        gpu.uuid,
        utilization_percent=busy if busy is not None else _mean(inside, "utilization_percent"),
        memory_used_bytes=_largest(inside, "memory_used_bytes"),
        memory_total_bytes=gpu.memory_total_bytes,
        power_w=power_w,
        energy_per_sample_j=None if power_w is None or s_per_sample is None else power_w * s_per_sample,
        sm_clock_mhz=_mean(inside, "sm_clock_mhz"),
        memory_clock_mhz=_mean(inside, "memory_clock_mhz"),
        throttled=_throttled(inside),
        pcie_generation=_largest(inside, "pcie_generation"),
        pcie_width=_largest(inside, "pcie_width"),
        peak_allocated_bytes=peak.allocated_bytes if peak else None,
        peak_reserved_bytes=peak.reserved_bytes if peak else None,
        performance=_performance(inside),
    )
    return _with_reasons(use, why_not)


def _with_reasons(use: GpuUse, why_not: Mapping[str, str]) -> GpuUse:
    """Add a reason for each missing value."""
    default = why_not.get("", "no NVML reading in the steady state")
    missing = [name for name, value in vars(use).items() if value is None]
    reasons = {name: why_not.get(_READ_AS.get(name, name), default) for name in missing}
    own = {name: _NO_PEAK for name in missing if name.startswith("peak_")} | {"copy_speed": _NO_COPY}
    return replace(use, not_measured={**reasons, **own})


def with_copy_speed(use: GpuUse, copying: CopySpeed | None) -> GpuUse:
    """Add the speed of copies to the device, if it was measured."""
    if copying is None:
        return use
    reasons = {name: why for name, why in use.not_measured.items() if name != "copy_speed"}
    return replace(use, copy_speed=copying, not_measured=reasons)


_NO_PEAK = "torch's allocator was not asked, or CUDA did not answer"
_NO_COPY = (
    "copies are timed only in isolation runs that replay batches from the host, if the GPU has memory for another batch"
)
_READ_AS = {"throttled": "throttled_by", "energy_per_sample_j": "power_w", "performance": "gpm"}


def _performance(readings: Iterable[GpuReading]) -> GpuPerformance | None:
    """Means of the performance metrics; `None` if no reading has any."""
    known = [reading.gpm for reading in readings if reading.gpm]
    values = {one.name: [getattr(gpm, one.name) for gpm in known] for one in fields(GpuPerformance)}
    means = {
        name: fmean(measured) for name, own in values.items() if (measured := [one for one in own if one is not None])
    }
    return GpuPerformance(**means) if means else None


def _known(readings: Iterable[GpuReading], name: str) -> list[float]:
    return [value for reading in readings if (value := getattr(reading, name)) is not None]


def _mean(readings: Iterable[GpuReading], name: str) -> float | None:
    values = _known(readings, name)
    return fmean(values) if values else None


def _largest(readings: Iterable[GpuReading], name: str) -> int | None:
    return max(map(int, _known(readings, name)), default=None)


def _power_w(readings: Sequence[GpuReading]) -> float | None:
    """Mean power from the energy counter, if two readings have it. A power reading is a mean over up to a second."""
    counted = [(reading.at_s, reading.energy_j) for reading in readings if reading.energy_j is not None]
    if len(counted) > 1 and counted[-1][0] > counted[0][0] and counted[-1][1] > counted[0][1]:
        return (counted[-1][1] - counted[0][1]) / (counted[-1][0] - counted[0][0])
    return _mean(readings, "power_w")


def _throttled(readings: Iterable[GpuReading]) -> dict[str, float] | None:
    known = [reading.throttled_by for reading in readings if reading.throttled_by is not None]
    counts = Counter(reason for reasons in known for reason in reasons)
    return {reason: count / len(known) for reason, count in counts.most_common()} if known else None


def _busy_percent(readings: Sequence[GpuReading], window: Window) -> float | None:
    """Mean of the dated periods, weighted by their overlap with the window; `None` without overlap."""
    shares = [
        (min(period.to_s, window.ended_s) - max(period.from_s, window.began_s), period.percent)
        for reading in readings
        for period in reading.busy or ()
    ]
    inside = [(overlap_s, percent) for overlap_s, percent in shares if overlap_s > 0]
    total_s = sum(overlap_s for overlap_s, _ in inside)
    return sum(overlap_s * percent for overlap_s, percent in inside) / total_s if total_s else None


def gpu_series(readings: Iterable[GpuReading]) -> Iterator[tuple[float, str, float]]:
    """Points of a timeline: time, metric and value."""
    for reading in readings:
        for period in reading.busy or ():
            yield period.to_s, f"gpu{reading.index}_utilization_percent", period.percent
        if reading.busy is None and reading.utilization_percent is not None:
            yield reading.at_s, f"gpu{reading.index}_utilization_percent", reading.utilization_percent
        if reading.gpm and (active := reading.gpm.sm_active_percent) is not None:
            yield reading.at_s, f"gpu{reading.index}_sm_active_percent", active
        for name in _DRAWN:
            if (value := getattr(reading, name)) is not None:
                yield reading.at_s, f"gpu{reading.index}_{name}", value


_DRAWN = ("memory_used_bytes", "power_w", "sm_clock_mhz")
