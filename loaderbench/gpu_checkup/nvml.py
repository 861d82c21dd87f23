"""The NVML readings of a run, taken for the checks: each a value, or the reason why it is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from loaderbench.gpu_checkup.records import Value
from loaderbench.monitors import BusyPeriod, GpuMonitor, GpuReading
from loaderbench.monitors.nvml import initialized_library
from loaderbench.records import Gpu, Reasons

_FACTS = ("sm_clock_max_mhz", "pcie_max_generation", "pcie_max_width", "near_cpus", "numa_node")
_NO_VALUE = "not reported by NVML"


class NvmlReadings:
    """One GPU, read by the monitor that trials use."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._monitor = GpuMonitor([gpu])
        self._seen: dict[int, int] = {}

    def read(self) -> tuple[dict[str, Value], Reasons]:
        """Read everything now, facts of the GPU and the driver's version included."""
        readings = self._monitor.read(seen=self._seen)
        (described,) = self._monitor.described()
        reasons = {**self._monitor.why_not(self._gpu.index), **described.not_measured}
        values = _values(readings[0] if readings else GpuReading(index=self._gpu.index, at_s=0.0))
        values |= {name: getattr(described, name) for name in _FACTS}
        values["driver_version"], reasons["driver_version"] = _driver_version()
        no_device = reasons.get("", _NO_VALUE)
        return values, {name: reasons.get(name) or no_device for name, value in values.items() if value is None}


def _values(reading: GpuReading) -> dict[str, Value]:
    found: dict[str, Any] = asdict(reading)
    for name in ("index", "at_s", "busy"):
        del found[name]
    performance = found.pop("gpm")
    found |= {"gpm": None} if performance is None else performance
    throttled_by = found["throttled_by"]
    found["throttled_by"] = None if throttled_by is None else list(throttled_by)
    return found | {"utilization_samples_per_s": _periods_per_s(reading.busy or ())}


def _periods_per_s(periods: Sequence[BusyPeriod]) -> float | None:
    """How often the driver samples utilization; `None` without samples since the last reading."""
    covered_s = periods[-1].to_s - periods[0].from_s if periods else 0.0
    return len(periods) / covered_s if covered_s > 0 else None


def _driver_version() -> tuple[str | None, str]:
    try:
        return str(initialized_library().nvmlSystemGetDriverVersion()), ""
    except Exception as error:  # a missing library, driver or permission, or undecodable bytes
        return None, f"NVML: {error}"
