"""What NVML tells about a GPU: each reading a value, or the reason why there is none."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from loaderbench.gpu_checkup.records import Value
from loaderbench.records import Gpu, Reasons

_PREFIXES = ("GPU-", "MIG-")
_ALL_SAMPLES, _MOST_PERCENT, _NOT_AVAILABLE = 0, 100, 2**64 - 1
_SLOWDOWNS = {4: "power cap", 8: "hardware", 32: "software thermal", 64: "hardware thermal", 128: "power brake"}
"""Bits of NVML's clock event reasons that say why a GPU runs below its clock."""


class NotTold(Exception):  # noqa: N818 - an answer that is none is not an error
    """NVML answered, but not with a value."""


def _utilization(nvml: Any, handle: Any) -> Value:
    percent = float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    if percent > _MOST_PERCENT:
        raise NotTold("not available")
    return percent


def _samples_per_s(nvml: Any, handle: Any) -> Value:
    _, samples = nvml.nvmlDeviceGetSamples(handle, nvml.NVML_GPU_UTILIZATION_SAMPLES, _ALL_SAMPLES)
    moments_us = sorted(sample.timeStamp for sample in samples if sample.timeStamp)
    if len(moments_us) < 2 or moments_us[0] == moments_us[-1]:
        raise NotTold(f"{len(moments_us)} samples: too few for a rate")
    return float((len(moments_us) - 1) / (moments_us[-1] - moments_us[0]) * 1e6)


def _memory(nvml: Any, handle: Any) -> Value:
    """By version 2 of the call, without what the driver reserves; older drivers have version 1 alone."""
    try:
        used = int(nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2).used)
    except Exception:
        used = int(nvml.nvmlDeviceGetMemoryInfo(handle).used)
    if used == _NOT_AVAILABLE:
        raise NotTold("not available")
    return used


def _has_memory_version_2(nvml: Any, handle: Any) -> Value:
    return nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2) is not None


def _slowdowns(nvml: Any, handle: Any) -> Value:
    bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return [name for bit, name in _SLOWDOWNS.items() if bits & bit]


def _driver(nvml: Any, _: Any) -> Value:
    found = nvml.nvmlSystemGetDriverVersion()
    return found.decode() if isinstance(found, bytes) else str(found)


Read = Callable[[Any, Any], Value]

READINGS: Mapping[str, Read] = MappingProxyType(
    {
        "driver_version": _driver,
        "utilization_percent": _utilization,
        "utilization_samples_per_s": _samples_per_s,
        "memory_used_bytes": _memory,
        "memory_leaves_out_reserved": _has_memory_version_2,
        "power_w": lambda nvml, handle: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
        "energy_j": lambda nvml, handle: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3,
        "sm_clock_mhz": lambda nvml, handle: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        "sm_clock_max_mhz": lambda nvml, handle: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM),
        "memory_clock_mhz": lambda nvml, handle: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
        "slowdowns": _slowdowns,
        "temperature_celsius": lambda nvml, handle: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        "pcie_generation": lambda nvml, handle: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
        "pcie_generation_max": lambda nvml, handle: nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle),
        "pcie_width": lambda nvml, handle: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
        "pcie_width_max": lambda nvml, handle: nvml.nvmlDeviceGetMaxPcieLinkWidth(handle),
        "mig_enabled": lambda nvml, handle: bool(nvml.nvmlDeviceGetMigMode(handle)[0]),
    }
)


class NvmlDevice:
    """One GPU, found by its UUID. `why_none` says why there is none to read."""

    def __init__(self, gpu: Gpu, nvml: Any = None) -> None:
        self.why_none: str | None = None
        self._handle: Any = None
        try:
            self._nvml = nvml or _import_nvml()
            self._nvml.nvmlInit()
        except Exception as error:  # no package, library, driver or right to use it
            self.why_none = f"NVML is unavailable: {error}"
            return
        for name in _names(gpu):
            try:
                self._handle = self._nvml.nvmlDeviceGetHandleByUUID(name)
            except Exception as error:  # NVML's own class, which a library that failed to load does not have
                self.why_none = f"NVML does not find the GPU: {error}"
            else:
                self.why_none = None
                return
        self.why_none = self.why_none or "torch reports no UUID of the GPU"

    def read(self) -> tuple[dict[str, Value], Reasons]:
        """All readings now; those that are `None` have their reasons."""
        values: dict[str, Value] = dict.fromkeys(READINGS)
        if self.why_none is not None:
            return values, dict.fromkeys(READINGS, self.why_none)
        reasons = {}
        for name, read in READINGS.items():
            try:
                values[name] = read(self._nvml, self._handle)
            except Exception as error:  # as above; a symbol that a driver lacks, too
                reasons[name] = f"NVML: {error}"
        return values, reasons


def _names(gpu: Gpu) -> list[str]:
    """What NVML may know a device by; without a UUID of torch, what `CUDA_VISIBLE_DEVICES` calls it."""
    if gpu.uuid:
        return [gpu.uuid] if gpu.uuid.startswith(_PREFIXES) else [f"{prefix}{gpu.uuid}" for prefix in _PREFIXES]
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    return [name for name in visible[gpu.index : gpu.index + 1] if name.startswith(_PREFIXES)]


def _import_nvml() -> Any:
    import pynvml

    return pynvml
