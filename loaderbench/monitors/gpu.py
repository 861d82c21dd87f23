"""Utilisation and memory of the GPUs that a trial sees, through NVML, matched to CUDA's numbering by UUID."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from loaderbench.records import Gpu

_PREFIXES = ("GPU-", "MIG-")
_NOT_AVAILABLE = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE, as memory in bytes


@dataclass(frozen=True)
class GpuReading:
    """One device now. `utilization_percent`: a kernel was resident in so much of the last period, by NVML."""

    index: int
    utilization_percent: float | None
    memory_used_bytes: int | None


class GpuMonitor:
    """Reads NVML for as long as it answers. `why_not` says, by index, why there is nothing to read, or not all."""

    def __init__(self, gpus: Sequence[Gpu], nvml: Any = None) -> None:
        self._handles: dict[int, Any] = {}
        self.why_not: dict[int, str] = {}
        self._has_version_2 = True
        if not gpus:
            return
        try:
            self._nvml = nvml or _import_nvml()
            self._nvml.nvmlInit()
        except Exception as error:  # a missing library, driver or right; each is a reason, none an end
            self.why_not = {gpu.index: f"NVML is unavailable: {error}" for gpu in gpus}
            return
        for gpu in gpus:
            self._find(gpu)

    def read(self) -> list[GpuReading]:
        """Read each device once; what it does not tell is `None` (a MIG slice, WSL, a device that was lost)."""
        return [
            GpuReading(index, self._utilization(index, handle), self._memory(index, handle))
            for index, handle in self._handles.items()
        ]

    def _find(self, gpu: Gpu) -> None:
        names = _names(gpu, os.environ.get("CUDA_VISIBLE_DEVICES", ""))
        for name in names:
            try:
                self._handles[gpu.index] = self._nvml.nvmlDeviceGetHandleByUUID(name)
            except self._nvml.NVMLError as error:
                self.why_not[gpu.index] = f"NVML cannot find the device {names[0]}: {error}"
            else:
                self.why_not.pop(gpu.index, None)
                return
        if not names:
            self.why_not[gpu.index] = "this torch version reports no device UUID, which NVML needs"

    def _utilization(self, index: int, handle: Any) -> float | None:
        percent = self._value(index, lambda: float(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu))
        return percent if percent is not None and percent <= 100 else None

    def _memory(self, index: int, handle: Any) -> int | None:
        used = self._value(index, lambda: self._memory_info(handle).used)
        return None if used is None or used == _NOT_AVAILABLE else int(used)

    def _memory_info(self, handle: Any) -> Any:
        """Memory without what the driver reserves, by version 2 of the call; older drivers have version 1 alone."""
        if self._has_version_2:
            try:
                return self._nvml.nvmlDeviceGetMemoryInfo(handle, self._nvml.nvmlMemory_v2)
            except self._nvml.NVMLError:
                found = self._nvml.nvmlDeviceGetMemoryInfo(handle)
                self._has_version_2 = False
                return found
        return self._nvml.nvmlDeviceGetMemoryInfo(handle)

    def _value(self, index: int, read: Callable[[], float]) -> float | None:
        try:
            return read()
        except self._nvml.NVMLError as error:
            self.why_not[index] = f"NVML: {error}"
            return None


def _names(gpu: Gpu, visible: str) -> list[str]:
    """What NVML may know a device by. A `torch` that tells no UUID leaves the names in `CUDA_VISIBLE_DEVICES`."""
    if gpu.uuid.startswith(_PREFIXES):
        return [gpu.uuid]
    if gpu.uuid:
        return [f"{prefix}{gpu.uuid}" for prefix in _PREFIXES]
    named = [name.strip() for name in visible.split(",")]
    return named[gpu.index : gpu.index + 1] if gpu.index < len(named) and named[gpu.index].startswith(_PREFIXES) else []


def count_gpus(nvml: Any = None) -> int:
    """Devices that a process started here may use, without CUDA: enough to plan with, not to measure with."""
    try:
        nvml = nvml or _import_nvml()
        nvml.nvmlInit()
        count = int(nvml.nvmlDeviceGetCount())
    except Exception:  # no library, no driver: no device that could be used
        return 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return count if visible is None else min(count, len(list(takewhile(_is_device, visible.split(",")))))


def _is_device(name: str) -> bool:
    """CUDA passes over the first that is none, and all after it."""
    return name.strip().isdigit() or name.strip().startswith(_PREFIXES)


def _import_nvml() -> Any:
    with warnings.catch_warnings():  # the deprecated package of the same name warns
        warnings.simplefilter("ignore")
        import pynvml
    return pynvml
