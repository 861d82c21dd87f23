"""NVML readings for the checks: which readings a GPU provides, before it is used and while it is busy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from loaderbench.gpu_checkup.records import CheckedDevice, CheckState, GpuCheck, Value
from loaderbench.monitors import BusyPeriod, GpuMonitor, GpuReading
from loaderbench.monitors.nvml import initialized_library
from loaderbench.records import Gpu, Reasons

_FACTS = ("sm_clock_max_mhz", "pcie_max_generation", "pcie_max_width", "near_cpus", "numa_node")
_NO_VALUE = "not reported by NVML"

BUSY_PERCENT, IDLE_PERCENT = 50.0, 10.0
NEEDED = ("utilization_percent", "memory_used_bytes")
"""Readings that a run needs; the others are useful but optional."""

_KERNEL_S, _KERNELS, _LOOK_AFTER_S = 0.02, 75, 1.0
"""Long enough for NVML's utilization, which lags by up to a second."""

_SHOWN = {
    "utilization_percent": "utilization {:.0f}%",
    "utilization_samples_per_s": "{:.0f} utilization readings/s",
    "sm_active_percent": "SM activity {:.0f}%",
    "memory_used_bytes": "memory",
    "power_w": "power {:.0f} W",
    "energy_j": "energy counter",
    "sm_clock_mhz": "SM clock {:.0f} MHz",
    "pcie_generation": "PCIe link",
}

ReadNvml = Callable[[], tuple[dict[str, Value], Reasons]]


class NvmlReadings:
    """One GPU, read by the same monitor as in trials."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._monitor = GpuMonitor([gpu])
        self._seen: dict[int, int] = {}

    def read(self) -> tuple[dict[str, Value], Reasons]:
        """Read everything, including facts of the GPU and the driver's version."""
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


def check_idle(read_nvml: ReadNvml) -> GpuCheck:
    """Read the utilization before any launch: it shows the work of other programs."""
    values, reasons = read_nvml()
    percent = values.get("utilization_percent")
    state: CheckState = "passed"
    said = f"unknown: {reasons.get('utilization_percent', 'not read')}"
    if isinstance(percent, int | float):
        said = f"{percent:.0f}% utilization before the checks"
        if percent > IDLE_PERCENT:
            state, said = "warning", f"{said}; waits and copies are less exact: use an idle GPU"
    return GpuCheck(
        id="other_programs",
        title="Other programs on the GPU",
        state=state,
        said=said,
        expected={"utilization_at_most_percent": IDLE_PERCENT},
        found={"utilization_percent": percent},
        not_measured={} if percent is not None else {"utilization_percent": said},
    )


def check_coverage(device: CheckedDevice, rate_hz: float, read_nvml: ReadNvml) -> GpuCheck:
    """Keep the device busy, read everything, and list available and missing readings."""
    for _ in range(_KERNELS):
        device.spin(round(_KERNEL_S * rate_hz))
    read_nvml()  # performance metrics cover the time between two readings
    device.sleep(_LOOK_AFTER_S)
    values, reasons = read_nvml()
    device.synchronize()
    state, doubt = _judge(values, reasons)
    return GpuCheck(
        id="nvml",
        title="NVML",
        state=state,
        said="; ".join(part for part in (doubt, _available(values), _missing(reasons)) if part),
        expected={"utilization_at_least_percent": BUSY_PERCENT},
        found=values,
        not_measured=reasons,
    )


def _judge(values: dict[str, Value], reasons: Reasons) -> tuple[CheckState, str]:
    if any(name in reasons for name in NEEDED):
        return "warning", ""
    percent = values["utilization_percent"]
    if isinstance(percent, int | float) and percent < BUSY_PERCENT:
        return "warning", f"reads {percent:.0f}% utilization while the GPU is busy"
    return "passed", ""


def _available(values: dict[str, Value]) -> str:
    return ", ".join(shown.format(values[name]) for name, shown in _SHOWN.items() if values.get(name) is not None)


def _missing(reasons: Reasons) -> str:
    """List missing readings by reason."""
    by_reason: dict[str, list[str]] = {}
    for name, why in reasons.items():
        by_reason.setdefault(why, []).append(name)
    if len(by_reason) == 1 and not set(_SHOWN) - set(reasons):
        return f"no readings: {next(iter(by_reason))}"
    return "; ".join(f"no {', '.join(names)} ({why})" for why, names in by_reason.items())
