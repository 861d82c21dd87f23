"""Which GPUs other processes use, by NVML's list of processes of each."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from loaderbench.monitors.nvml import initialized_library
from loaderbench.records import Gpu

NONE_USED = "no GPU reports a process of the training (in a container, the driver uses other process IDs)"


def gpus_used_by(pids: Collection[int]) -> tuple[tuple[Gpu, ...], str]:
    """The GPUs with a compute process among these, by NVML's numbering; without any, why.

    Source: NVML API Reference, `nvmlDeviceGetComputeRunningProcesses`.
    """
    try:
        nvml = initialized_library()
        count = int(nvml.nvmlDeviceGetCount())
    except Exception as error:  # a missing library, driver or right
        return (), f"NVML is unavailable: {error}"
    found = [gpu for index in range(count) if (gpu := _used(nvml, index, pids)) is not None]
    return tuple(found), "" if found else NONE_USED


def _used(nvml: Any, index: int, pids: Collection[int]) -> Gpu | None:
    try:
        device = nvml.nvmlDeviceGetHandleByIndex(index)
        if not any(process.pid in pids for process in nvml.nvmlDeviceGetComputeRunningProcesses(device)):
            return None
        uuid, memory = _text(nvml.nvmlDeviceGetUUID(device)), nvml.nvmlDeviceGetMemoryInfo(device)
        return Gpu(index, uuid, _name(nvml, device), int(memory.total))
    except (nvml.NVMLError, AttributeError):  # a device that was lost, or a call that the driver does not know
        return None


def _name(nvml: Any, device: Any) -> str:
    try:
        return _text(nvml.nvmlDeviceGetName(device))
    except (nvml.NVMLError, AttributeError):
        return "GPU"


def _text(found: str | bytes) -> str:
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else found
