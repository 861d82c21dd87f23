"""NVIDIA's NVML: devices by CUDA index, their constant properties, and the devices that a process uses."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from loaderbench import host_memory
from loaderbench.cpu_lists import cpu_list
from loaderbench.records import Gpu, Reasons

ONLY_NVIDIA = "NVML supports NVIDIA GPUs only"
_PREFIXES = ("GPU-", "MIG-")

_BITS = 64  # in each word of a bit set
_MOST_NODES = 1024

NONE_USED = "no GPU reports a process of the training (in a container, the driver uses other process IDs)"


class Nvml:
    """An initialized NVML. `library` is pynvml.

    `handles` and `why_not` map each CUDA index to its handle, or to the reason why there is none. Without an NVIDIA
    GPU, NVML is not initialized.
    """

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self.handles: dict[int, Any] = {}
        self.library: Any = None
        self.why_not = {gpu.index: f"no readings of {gpu.platform}: {ONLY_NVIDIA}" for gpu in gpus if not gpu.of_nvidia}
        gpus = [gpu for gpu in gpus if gpu.of_nvidia]
        if not gpus:
            return
        try:
            self.library = initialized_library()
        except Exception as error:  # a missing library, driver or permission: recorded, never raised
            self.why_not |= {gpu.index: f"NVML is unavailable: {error}" for gpu in gpus}
            return
        for gpu in gpus:
            self._find(gpu)

    def _find(self, gpu: Gpu) -> None:
        names = _names(gpu, os.environ.get("CUDA_VISIBLE_DEVICES", ""))
        for name in names:
            try:
                self.handles[gpu.index] = self.library.nvmlDeviceGetHandleByUUID(name)
            except self.library.NVMLError as error:
                self.why_not[gpu.index] = f"NVML cannot find the device {names[0]}: {error}"
            else:
                self.why_not.pop(gpu.index, None)
                return
        if not names:
            self.why_not[gpu.index] = "this torch version reports no device UUID, which NVML needs"


def _names(gpu: Gpu, visible: str) -> list[str]:
    """Names that NVML may know a device by. If torch reports no UUID, `CUDA_VISIBLE_DEVICES` may have one."""
    if gpu.uuid.startswith(_PREFIXES):
        return [gpu.uuid]
    if gpu.uuid:
        return [f"{prefix}{gpu.uuid}" for prefix in _PREFIXES]
    named = [name.strip() for name in visible.split(",")]
    return named[gpu.index : gpu.index + 1] if gpu.index < len(named) and named[gpu.index].startswith(_PREFIXES) else []


def count_gpus() -> int:
    """The number of devices that a process started here could use, found without CUDA.

    For planning, not for measuring.
    """
    try:
        count = int(initialized_library().nvmlDeviceGetCount())
    except Exception:  # no library or no driver: no usable device
        return 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return count if visible is None else min(count, len(list(takewhile(_is_device, visible.split(",")))))


def _is_device(name: str) -> bool:
    """Whether a name is valid. CUDA ignores the first invalid name in `CUDA_VISIBLE_DEVICES` and all after it."""
    return name.strip().isdigit() or name.strip().startswith(_PREFIXES)


def initialized_library() -> Any:
    """Import and initialize `pynvml`. Raises its `NVMLError`, or `ImportError`."""
    with warnings.catch_warnings():  # the deprecated package `pynvml` warns on import
        warnings.simplefilter("ignore")
        import pynvml
    pynvml.nvmlInit()
    return pynvml


def described(gpus: Sequence[Gpu], nvml: Nvml, is_over: Callable[[], bool] = lambda: False) -> tuple[Gpu, ...]:
    """The GPUs with their constant properties, or a reason for each missing one.

    After `is_over` returns true, no further call is made.
    """
    return tuple(_described(gpu, nvml, is_over) for gpu in gpus)


def _described(gpu: Gpu, nvml: Nvml, is_over: Callable[[], bool]) -> Gpu:
    if gpu.index not in nvml.handles:
        return replace(gpu, not_measured=dict.fromkeys(_FACTS, nvml.why_not.get(gpu.index, "not known to NVML")))
    properties: dict[str, Any] = {}
    reasons: Reasons = {}
    device = None if is_over() else _physical(nvml.library, nvml.handles[gpu.index])
    for name, read in _FACTS.items():
        if is_over():
            properties[name], reasons[name] = None, "NVML took too long to answer"
            continue
        try:
            properties[name] = read(nvml.library, device)
        except (nvml.library.NVMLError, AttributeError) as error:
            properties[name], reasons[name] = None, f"NVML: {error}"
        if properties[name] is None:
            reasons.setdefault(name, "not reported by NVML")
    return replace(gpu, **properties, not_measured=reasons)


def _physical(nvml: Any, device: Any) -> Any:
    """The GPU that a MIG instance belongs to, which has the PCIe link and the NUMA node."""
    try:
        return nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device)
    except (nvml.NVMLError, AttributeError):  # a complete GPU, or a driver without MIG
        return device


def _near_cpus(nvml: Any, device: Any) -> str | None:
    """The CPUs with affinity to a device. Source: NVML API Reference, `nvmlDeviceGetCpuAffinity`, a bit per CPU."""
    words = (os.cpu_count() or 1) // _BITS + 1
    return cpu_list(_members(nvml.nvmlDeviceGetCpuAffinity(device, words))) or None


def _numa_node(nvml: Any, device: Any) -> int | None:
    """The first NUMA node near a device. `nvmlDeviceGetNumaNodeId` is only for GPUs that are NUMA nodes themselves."""
    nodes = nvml.nvmlDeviceGetMemoryAffinity(device, _MOST_NODES // _BITS, nvml.NVML_AFFINITY_SCOPE_NODE)
    return min(_members(nodes), default=None)


def _members(words: Sequence[int]) -> list[int]:
    return [place * _BITS + bit for place, word in enumerate(words) for bit in range(_BITS) if word >> bit & 1]


_FACTS: dict[str, Callable[[Any, Any], Any]] = {
    "pcie_max_generation": lambda nvml, device: int(nvml.nvmlDeviceGetMaxPcieLinkGeneration(device)),
    "pcie_max_width": lambda nvml, device: int(nvml.nvmlDeviceGetMaxPcieLinkWidth(device)),
    "sm_clock_max_mhz": lambda nvml, device: float(nvml.nvmlDeviceGetMaxClockInfo(device, nvml.NVML_CLOCK_SM)),
    "near_cpus": _near_cpus,
    "numa_node": _numa_node,
}


def gpus_used_by(pids: Collection[int]) -> tuple[tuple[Gpu, ...], str]:
    """The GPUs with a compute process among these pids, by NVML index. If there is none, also the reason.

    Source: NVML API Reference, `nvmlDeviceGetComputeRunningProcesses`.
    """
    try:
        nvml = initialized_library()
        count = int(nvml.nvmlDeviceGetCount())
    except Exception as error:  # a missing library, driver or permission
        return (), f"NVML is unavailable: {error}"
    used = [gpu for index in range(count) if (gpu := _used(nvml, index, pids)) is not None]
    return tuple(used), "" if used else NONE_USED


def _used(nvml: Any, index: int, pids: Collection[int]) -> Gpu | None:
    try:
        device = nvml.nvmlDeviceGetHandleByIndex(index)
        if not any(process.pid in pids for process in nvml.nvmlDeviceGetComputeRunningProcesses(device)):
            return None
        uuid = _text(nvml.nvmlDeviceGetUUID(device))
        return Gpu(index, uuid, _device_name(nvml, device), _memory_bytes(nvml, device))
    except (nvml.NVMLError, AttributeError):  # a lost device, or a call that the driver does not support
        return None


def _memory_bytes(nvml: Any, device: Any) -> int:
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(device).total)
    except nvml.NVMLError_NotSupported:  # the GPU uses the machine's memory
        return host_memory.total_bytes() or 0


def _device_name(nvml: Any, device: Any) -> str:
    try:
        return _text(nvml.nvmlDeviceGetName(device))
    except (nvml.NVMLError, AttributeError):
        return "GPU"


def _text(found: str | bytes) -> str:
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else found
