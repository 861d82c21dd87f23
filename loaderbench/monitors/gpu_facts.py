"""What NVML reports of a GPU that never changes: its link, its largest clock, and the CPUs near it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from loaderbench.cpu_lists import cpu_list
from loaderbench.monitors.nvml import Nvml
from loaderbench.records import Gpu, Reasons

_BITS = 64  # of each number of a set
_MOST_NODES = 1024


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
