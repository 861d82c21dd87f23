"""The driver's library NVML: its devices by CUDA's numbering, what never changes of each, and which a process uses."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from loaderbench.cpu_lists import cpu_list
from loaderbench.records import Gpu, Reasons

ONLY_NVIDIA = "NVML supports NVIDIA GPUs only"
_PREFIXES = ("GPU-", "MIG-")

_BITS = 64  # of each number of a set
_MOST_NODES = 1024

NONE_USED = "no GPU reports a process of the training (in a container, the driver uses other process IDs)"


class Nvml:
    """`library` is pynvml, initialized; `handles` and `why_not` have, by CUDA's index, what was found and what not.

    Without a GPU of NVIDIA's, NVML is not asked.
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
        except Exception as error:  # a missing library, driver or right; each is a reason, none an end
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
    """What NVML may know a device by. Where torch reports no UUID, the names in `CUDA_VISIBLE_DEVICES` remain."""
    if gpu.uuid.startswith(_PREFIXES):
        return [gpu.uuid]
    if gpu.uuid:
        return [f"{prefix}{gpu.uuid}" for prefix in _PREFIXES]
    named = [name.strip() for name in visible.split(",")]
    return named[gpu.index : gpu.index + 1] if gpu.index < len(named) and named[gpu.index].startswith(_PREFIXES) else []


def count_gpus() -> int:
    """Devices that a process started here may use, without CUDA: enough to plan with, not to measure with."""
    try:
        count = int(initialized_library().nvmlDeviceGetCount())
    except Exception:  # no library, no driver: no device that could be used
        return 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return count if visible is None else min(count, len(list(takewhile(_is_device, visible.split(",")))))


def _is_device(name: str) -> bool:
    """CUDA passes over the first that is none, and all after it."""
    return name.strip().isdigit() or name.strip().startswith(_PREFIXES)


def initialized_library() -> Any:
    """The module `pynvml`, ready to be asked. Raises its `NVMLError`, or `ImportError`."""
    with warnings.catch_warnings():  # the deprecated package of the same name warns
        warnings.simplefilter("ignore")
        import pynvml
    pynvml.nvmlInit()
    return pynvml


def described(gpus: Sequence[Gpu], nvml: Nvml, is_over: Callable[[], bool] = lambda: False) -> tuple[Gpu, ...]:
    """The same GPUs with what is known of each, or why it is not. Once it `is_over`, no further call is made."""
    return tuple(_described(gpu, nvml, is_over) for gpu in gpus)


def _described(gpu: Gpu, nvml: Nvml, is_over: Callable[[], bool]) -> Gpu:
    if gpu.index not in nvml.handles:
        return replace(gpu, not_measured=dict.fromkeys(_FACTS, nvml.why_not.get(gpu.index, "not known to NVML")))
    found: dict[str, Any] = {}
    reasons: Reasons = {}
    device = None if is_over() else _physical(nvml.library, nvml.handles[gpu.index])
    for name, read in _FACTS.items():
        if is_over():
            found[name], reasons[name] = None, "NVML took too long to answer"
            continue
        try:
            found[name] = read(nvml.library, device)
        except (nvml.library.NVMLError, AttributeError) as error:
            found[name], reasons[name] = None, f"NVML: {error}"
        if found[name] is None:
            reasons.setdefault(name, "not reported by NVML")
    return replace(gpu, **found, not_measured=reasons)


def _physical(nvml: Any, device: Any) -> Any:
    """The GPU that a MIG instance is part of: link and place are the GPU's."""
    try:
        return nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device)
    except (nvml.NVMLError, AttributeError):  # it is a whole GPU, or the driver knows no MIG
        return device


def _near_cpus(nvml: Any, device: Any) -> str | None:
    """Source: NVML API Reference, `nvmlDeviceGetCpuAffinity`: the ideal CPUs of a device, a bit each."""
    words = (os.cpu_count() or 1) // _BITS + 1
    return cpu_list(_members(nvml.nvmlDeviceGetCpuAffinity(device, words))) or None


def _numa_node(nvml: Any, device: Any) -> int | None:
    """The first of the nodes near it. `nvmlDeviceGetNumaNodeId` is of GPUs that are themselves a node."""
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
        return Gpu(index, uuid, _device_name(nvml, device), int(memory.total))
    except (nvml.NVMLError, AttributeError):  # a device that was lost, or a call that the driver does not know
        return None


def _device_name(nvml: Any, device: Any) -> str:
    try:
        return _text(nvml.nvmlDeviceGetName(device))
    except (nvml.NVMLError, AttributeError):
        return "GPU"


def _text(found: str | bytes) -> str:
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else found
