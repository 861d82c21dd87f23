"""Whether this process uses CUDA or another GPU, and which, without importing torch or touching a device."""

from __future__ import annotations

import sys
from dataclasses import dataclass


def uses_cuda() -> bool:
    """Whether torch is imported and has initialized CUDA."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()


def cuda_devices_with_memory() -> tuple[int, ...]:
    """CUDA devices, by index, on which torch has allocated memory in this process; the same from all threads.

    Empty if CUDA is not initialized. Creates no context on any device.
    """
    if not uses_cuda():
        return ()
    cuda = sys.modules["torch"].cuda
    return tuple(index for index in range(cuda.device_count()) if cuda.max_memory_reserved(index) > 0)


def cuda_devices_in_use() -> tuple[int, ...]:
    """CUDA devices, by index, on which torch has allocated memory in this process; if none, this thread's current one.

    Empty if CUDA is not initialized or no longer responds. Creates no context on any other device.
    """
    if not uses_cuda():
        return ()
    try:
        return cuda_devices_with_memory() or (sys.modules["torch"].cuda.current_device(),)
    except RuntimeError:  # after a device error, each call raises it again
        return ()


def devices_in_use() -> tuple[int, ...]:
    """CUDA devices in use; without CUDA, the current device of another kind of accelerator that is in use."""
    kind = other_kind_in_use()
    if kind is None:
        return cuda_devices_in_use()
    return (int(sys.modules["torch"].xpu.current_device()),) if kind == "xpu" else (0,)


def other_kind_in_use() -> str | None:
    """`xpu` or `mps` if this process computes on such a device, else `None`."""
    torch = sys.modules.get("torch")
    if torch is None or torch.cuda.is_initialized():
        return None
    if torch.xpu.is_initialized():
        return "xpu"
    return "mps" if torch.backends.mps.is_available() and torch.mps.current_allocated_memory() > 0 else None


@dataclass(frozen=True)
class PeakMemory:
    """Peak memory of torch on a device in this process: in tensors, and with the allocator's cache."""

    index: int
    allocated_bytes: int
    reserved_bytes: int


def peak_memory() -> tuple[PeakMemory, ...]:
    """Peak memory of each device in use; empty if CUDA does not respond. Source: PyTorch, "CUDA memory management"."""
    devices = devices_in_use()
    if not devices:
        return ()
    torch = sys.modules["torch"]
    cuda = torch.cuda if torch.cuda.is_initialized() else torch.xpu
    if other_kind_in_use() == "mps" or not hasattr(cuda, "max_memory_reserved"):  # these record no peaks
        return ()
    try:
        return tuple(PeakMemory(i, cuda.max_memory_allocated(i), cuda.max_memory_reserved(i)) for i in devices)
    except RuntimeError:  # after a device error, each call raises it again
        return ()


def computing_device() -> int | None:
    """The device that a loop of this process computes on: the one on which torch holds the most memory.

    On a tie, the current device; `None` without CUDA. A model on several devices is timed on one of them.
    """
    devices = cuda_devices_in_use()
    if len(devices) < 2:
        return devices[0] if devices else None
    cuda = sys.modules["torch"].cuda
    current = cuda.current_device()
    return max(devices, key=lambda index: (cuda.memory_reserved(index), index == current))
