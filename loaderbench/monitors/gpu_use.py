"""GPU use over a window of time, from readings."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from statistics import fmean

from loaderbench.cuda_use import PeakMemory
from loaderbench.monitors.gpu import LONGEST_PERIOD_S, GpuReading
from loaderbench.monitors.gpu_thread import Pause
from loaderbench.records import CopySpeed, Gpu, GpuPerformance, GpuUse


@dataclass(frozen=True)
class Window:
    """A steady state on the clock of the readings. `s_per_sample` is the mean time per sample.

    `pauses` do not belong to it. They are in ascending order.
    """

    began_s: float
    ended_s: float
    s_per_sample: float | None = None
    pauses: Sequence[Pause] = ()

    def part_of(self, at_s: float) -> int:
        """The number of the part between pauses that a time belongs to."""
        return bisect(self.pauses, at_s, key=lambda pause: pause.from_s)

    def overlap_s(self, from_s: float, to_s: float) -> float:
        """Seconds of a period that are in the steady state."""
        from_s, to_s = max(from_s, self.began_s), min(to_s, self.ended_s)
        paused = self.pauses_in(from_s, to_s)
        return to_s - from_s - sum(min(one.to_s, to_s) - max(one.from_s, from_s) for one in paused)

    def pauses_in(self, from_s: float, to_s: float) -> Sequence[Pause]:
        """The pauses that overlap with a period."""
        return self.pauses[bisect(self.pauses, from_s, key=lambda pause: pause.to_s) : self.part_of(to_s)]


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
    settled = [one for one in inside if not window.pauses_in(one.at_s - LONGEST_PERIOD_S, one.at_s)]
    busy, power_w = _busy_percent(own, window), _power_w(inside, settled or inside, window)
    s_per_sample = window.s_per_sample
    use = GpuUse(
        gpu.index,
        gpu.uuid,
        utilization_percent=busy if busy is not None else _mean(settled or inside, "utilization_percent"),
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
    names = [one.name for one in fields(GpuPerformance) if one.name != "not_measured"]
    values = {name: [found for gpm in known if (found := getattr(gpm, name)) is not None] for name in names}
    means = {name: fmean(measured) for name, measured in values.items() if measured}
    missing = dict.fromkeys(values.keys() - means.keys(), "NVML does not report it on this GPU")
    return GpuPerformance(**means, not_measured=missing) if means else None


def _known(readings: Iterable[GpuReading], name: str) -> list[float]:
    return [value for reading in readings if (value := getattr(reading, name)) is not None]


def _mean(readings: Iterable[GpuReading], name: str) -> float | None:
    values = _known(readings, name)
    return fmean(values) if values else None


def _largest(readings: Iterable[GpuReading], name: str) -> int | None:
    return max(map(int, _known(readings, name)), default=None)


def _power_w(readings: Sequence[GpuReading], settled: Sequence[GpuReading], window: Window) -> float | None:
    """Mean power from the energy counter, if two readings without a pause between them have it.

    Else that of the `settled` readings. A power reading is a mean over up to a second.
    """
    counted = [(reading.at_s, reading.energy_j) for reading in readings if reading.energy_j is not None]
    pairs = [pair for pair in pairwise(counted) if window.part_of(pair[0][0]) == window.part_of(pair[1][0])]
    wall_s = sum(after_s - before_s for (before_s, _), (after_s, _) in pairs)
    used_j = sum(after_j - before_j for (_, before_j), (_, after_j) in pairs)
    return used_j / wall_s if wall_s > 0 and used_j > 0 else _mean(settled, "power_w")


def _throttled(readings: Iterable[GpuReading]) -> dict[str, float] | None:
    known = [reading.throttled_by for reading in readings if reading.throttled_by is not None]
    counts = Counter(reason for reasons in known for reason in reasons)
    return {reason: count / len(known) for reason, count in counts.most_common()} if known else None


def _busy_percent(readings: Sequence[GpuReading], window: Window) -> float | None:
    """Mean of the dated periods, weighted by their overlap with the window; `None` without overlap."""
    shares = [
        (window.overlap_s(period.from_s, period.to_s), period.percent)
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
