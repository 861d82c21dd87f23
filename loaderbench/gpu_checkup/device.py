"""The GPU that CUDA shows, as the checks see it."""

from __future__ import annotations

import time
from typing import Any, cast

import torch

from loaderbench.consumers import WaitClock
from loaderbench.consumers.cuda import CudaWaitClock
from loaderbench.gpu_checkup.records import TimedEvent
from loaderbench.gpu_checkup.usable import launch_kernel


class CudaDevice:
    """One of them, by CUDA's index. It becomes the current device of this process, on which events are recorded."""

    def __init__(self, index: int) -> None:
        self._index = index

    def launch_kernel(self) -> None:
        """Run one kernel. Raises what CUDA says, and `RuntimeError` for a wrong result."""
        torch.cuda.set_device(self._index)
        launch_kernel(f"cuda:{self._index}")

    def spin(self, cycles: int) -> None:
        """Queue a kernel that counts cycles, on one multiprocessor."""
        torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]

    def event(self) -> TimedEvent:
        """An event with timing."""
        return cast(TimedEvent, torch.cuda.Event(enable_timing=True))  # type: ignore[no-untyped-call]

    def synchronize(self) -> None:
        """Wait for all that is queued."""
        torch.cuda.synchronize(self._index)

    def wait_clock(self) -> WaitClock:
        """The one that trials and the profiler use."""
        return CudaWaitClock()

    def prepare_copy(self, size_bytes: int, *, pinned: bool) -> Any:
        """Host memory and room on the device. The host memory is written once to allocate its pages."""
        host = torch.empty(size_bytes, dtype=torch.uint8, pin_memory=pinned).fill_(1)
        return host, torch.empty(size_bytes, dtype=torch.uint8, device=torch.device("cuda", self._index))

    def copy(self, prepared: Any) -> None:
        """Queue the copy; a copy from pageable memory returns when the host has handed it over."""
        host, there = prepared
        there.copy_(host, non_blocking=True)

    def now_s(self) -> float:
        """The host's monotonic clock."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Sleep on the host."""
        time.sleep(seconds)
