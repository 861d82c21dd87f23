"""Measures how fast a trial's process can copy batches to its GPU, from pinned and from pageable memory."""

from __future__ import annotations

from collections.abc import Callable

from loaderbench.cuda_use import computing_device
from loaderbench.gpu_checkup.device import CudaDevice
from loaderbench.gpu_checkup.rates import copy_gb_per_s
from loaderbench.gpu_checkup.records import CheckedDevice
from loaderbench.records import CopySpeed


def copy_speed(
    batch_bytes: float, samples: float, device_of: Callable[[int], CheckedDevice] = CudaDevice
) -> CopySpeed | None:
    """Copy buffers of a batch's size; `None` if this process uses no GPU, or if CUDA no longer responds.

    `batch_bytes` and `samples` are averages per batch.
    """
    index = computing_device()
    if index is None or not batch_bytes or not samples:
        return None
    device = device_of(index)
    try:
        return CopySpeed(
            index=index,
            bytes_per_sample=batch_bytes / samples,
            pinned_gb_per_s=copy_gb_per_s(device, pinned=True, size_bytes=round(batch_bytes)),
            pageable_gb_per_s=copy_gb_per_s(device, pinned=False, size_bytes=round(batch_bytes)),
        )
    except RuntimeError:  # no memory for another batch, or a sticky device error
        return None
