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
