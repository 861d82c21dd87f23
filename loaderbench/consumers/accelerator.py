"""Accelerators other than CUDA devices, such as XPU and MPS: how to find one, and how to wait for it.

torch calls ROCm devices `cuda`, so `cuda.py` covers them. A build of torch supports at most one other kind. With such a
device, the host waits for the device after each step, because not all kinds have timed events. Source: PyTorch,
`torch.accelerator` (since 2.6); before, `torch.xpu` and `torch.backends.mps`.
"""

from __future__ import annotations

from typing import Any

import torch

from loaderbench import host_memory
from loaderbench.ranks import has_ranks, local_rank
from loaderbench.records import Gpu

CUDA = "cuda"


def platform() -> str:
    """The platform that torch was built for: `CUDA 13.0`, `ROCm 6.4`, `XPU`, `MPS`; empty for a CPU build."""
    if torch.version.hip:
        return f"ROCm {torch.version.hip}"
    if torch.version.cuda:
        return f"CUDA {torch.version.cuda}"
    kind = other_kind()
    return kind.upper() if kind else ""


def other_kind() -> str | None:
    """The accelerator that torch can use if it cannot use CUDA, by torch's name; `None` without any."""
    if torch.cuda.is_available():
        return None
    found: Any = getattr(torch, "accelerator", None)
    if found is None:
        known = {"xpu": torch.xpu, "mps": torch.backends.mps}
        return next((kind for kind, module in known.items() if module.is_available()), None)
    device = found.current_accelerator() if found.is_available() else None
    return None if device is None or device.type == CUDA else str(device.type)


def device_here(name: str) -> str:
    """The device that a suite requests. Plain `cuda` means this machine's accelerator: CUDA, ROCm, XPU or MPS.

    Of several ranks, each uses the CUDA device of its local rank.
    """
    found = (other_kind() or name) if name == CUDA else name
    return f"{CUDA}:{local_rank()}" if found == CUDA and has_ranks() else found


def make_current(name: str) -> None:
    """Make a GPU that a suite names by its index the current one: loaders that decode on a GPU use that one."""
    if name.startswith(f"{CUDA}:") and torch.cuda.is_available():
        torch.cuda.set_device(name)


def other_gpus(kind: str) -> tuple[Gpu, ...]:
    """All devices of this kind."""
    module = getattr(torch, kind)
    return tuple(_describe(kind, module, index) for index in range(module.device_count()))


def _describe(kind: str, module: Any, index: int) -> Gpu:
    """Describe a device. Older versions of MPS report neither name nor memory; MPS shares the host's memory."""
    if hasattr(module, "get_device_properties"):
        found = module.get_device_properties(index)
        return Gpu(index, "", found.name, int(found.total_memory), platform=kind.upper())
    name = getattr(getattr(torch.backends, kind, None), "get_name", lambda: f"{kind.upper()} device")()
    memory = getattr(module, "recommended_max_memory", lambda: host_memory.total_bytes() or 0)()
    return Gpu(index, "", str(name), int(memory), platform=kind.upper())


def synchronize(device: torch.device) -> None:
    """Wait until a device has finished all queued work."""
    module = getattr(torch, device.type)
    module.synchronize() if device.type == "mps" else module.synchronize(device)
