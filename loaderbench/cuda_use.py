"""Whether this process uses CUDA, and which devices, asked without importing torch or touching a device."""

from __future__ import annotations

import sys


def uses_cuda() -> bool:
    """Whether torch is imported and has initialized CUDA."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()


def cuda_devices_with_memory() -> tuple[int, ...]:
    """Devices, in CUDA's numbering, that torch took memory of in this process; the same from all of its threads.

    Empty where CUDA is not initialized. No context is made on any device.
    """
    if not uses_cuda():
        return ()
    cuda = sys.modules["torch"].cuda
    return tuple(index for index in range(cuda.device_count()) if cuda.max_memory_reserved(index) > 0)


def cuda_devices_in_use() -> tuple[int, ...]:
    """Devices, in CUDA's numbering, that torch took memory of in this process; without any, this thread's current one.

    Empty where CUDA is not initialized, or does not answer any more. No context is made on any other device.
    """
    if not uses_cuda():
        return ()
    try:
        return cuda_devices_with_memory() or (sys.modules["torch"].cuda.current_device(),)
    except RuntimeError:  # after an error of the device, each call repeats it
        return ()


def computing_device() -> int | None:
    """The device that a loop of this process computes on: the one that torch holds most memory of.

    Of those that hold the same, the current one; `None` where CUDA is not used. A model on several devices is timed on
    one of them.
    """
    devices = cuda_devices_in_use()
    if len(devices) < 2:
        return devices[0] if devices else None
    cuda = sys.modules["torch"].cuda
    current = cuda.current_device()
    return max(devices, key=lambda index: (cuda.memory_reserved(index), index == current))
