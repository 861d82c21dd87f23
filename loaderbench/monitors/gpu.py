"""Utilisation and memory of the GPUs that a trial sees, through NVML, matched to CUDA's numbering by UUID."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from loaderbench.records import Gpu


@dataclass(frozen=True)
class GpuReading:
    """One device now. `utilization_percent`: a kernel was resident in so much of the last period, by NVML."""

    index: int
    utilization_percent: float | None
    memory_used_bytes: int | None


class GpuMonitor:
    """Reads NVML for as long as it answers. `why_not` says why there is nothing to read."""

    def __init__(self, gpus: Sequence[Gpu], nvml: Any = None) -> None:
        self._handles: dict[int, Any] = {}
        self.why_not: dict[int, str] = {}
        if not gpus:
            return
        try:
            self._nvml = nvml or _import_nvml()
            self._nvml.nvmlInit()
        except Exception as error:  # a missing library, driver or right; each is a reason, none an end
            self.why_not = {gpu.index: f"NVML cannot be used: {error}" for gpu in gpus}
            return
        for gpu in gpus:
            self._find(gpu)

    def read(self) -> list[GpuReading]:
        """Read each device once; what it does not tell is `None` (a MIG slice, say)."""
        return [
            GpuReading(index, self._utilization(handle), self._memory(handle))
            for index, handle in self._handles.items()
        ]

    def _find(self, gpu: Gpu) -> None:
        uuid = gpu.uuid if gpu.uuid.startswith(("GPU-", "MIG-")) else f"GPU-{gpu.uuid}"
        try:
            self._handles[gpu.index] = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
        except self._nvml.NVMLError as error:
            self.why_not[gpu.index] = f"NVML does not know the device {uuid}: {error}"

    def _utilization(self, handle: Any) -> float | None:
        return self._value(lambda: float(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu))

    def _memory(self, handle: Any) -> int | None:
        found = self._value(lambda: self._nvml.nvmlDeviceGetMemoryInfo(handle).used)
        return None if found is None else int(found)

    def _value(self, read: Callable[[], float]) -> float | None:
        try:
            return read()
        except self._nvml.NVMLError:
            return None


def count_gpus() -> int:
    """Devices that the driver knows, without CUDA: enough to plan with, not to measure with."""
    try:
        nvml = _import_nvml()
        nvml.nvmlInit()
        return int(nvml.nvmlDeviceGetCount())
    except Exception:  # no library, no driver: no device that could be used
        return 0


def _import_nvml() -> Any:
    with warnings.catch_warnings():  # the deprecated package of the same name warns
        warnings.simplefilter("ignore")
        import pynvml
    return pynvml
