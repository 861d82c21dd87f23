"""A CUDA device, as the checks use it."""

from __future__ import annotations

import math
import time
from functools import cached_property
from typing import Any, cast

import torch

from loaderbench.consumers import WaitClock
from loaderbench.consumers.cuda import CudaWaitClock
from loaderbench.datasets.encoded import decode_jpegs
from loaderbench.datasets.photos import photo_jpeg
from loaderbench.gpu_checkup.records import TimedEvent
from loaderbench.gpu_checkup.usable import launch_kernel


class CudaDevice:
    """A device by CUDA's index. It becomes the current device of this process, on which events are recorded."""

    def __init__(self, index: int) -> None:
        self._index = index

    def launch_kernel(self) -> None:
        """Run one kernel. Raises CUDA's errors, and `RuntimeError` for a wrong result."""
        torch.cuda.set_device(self._index)
        launch_kernel(f"cuda:{self._index}")

    def spin(self, cycles: int) -> None:
        """Queue a kernel that spins for this many cycles on one multiprocessor."""
        torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]

    def event(self) -> TimedEvent:
        """Create an event with timing."""
        return cast(TimedEvent, torch.cuda.Event(enable_timing=True))  # type: ignore[no-untyped-call]

    def synchronize(self) -> None:
        """Wait for all queued work."""
        torch.cuda.synchronize(self._index)

    def wait_clock(self) -> WaitClock:
        """Create the wait clock that trials and the profiler use."""
        return CudaWaitClock(self._index)

    def prepare_copy(self, size_bytes: int, *, pinned: bool) -> Any:
        """Allocate host and device memory. The host memory is written once to allocate its pages."""
        host = torch.empty(size_bytes, dtype=torch.uint8, pin_memory=pinned).fill_(1)
        return host, torch.empty(size_bytes, dtype=torch.uint8, device=torch.device("cuda", self._index))

    def copy(self, prepared: Any) -> None:
        """Queue the copy; from pageable memory, the call returns when the host has handed over the data."""
        host, there = prepared
        there.copy_(host, non_blocking=True)

    def decode(self, images: int) -> None:
        """Decode with the decoder of `decoder: device`."""
        decode_jpegs([self._photo] * images, torch.device("cuda", self._index))

    def decoded_psnr_db(self) -> float | None:
        """PSNR of the decoded pixels against the CPU's; `None` if identical. Source: ITU-T J.340, for 8 bits."""
        places = torch.device("cuda", self._index), torch.device("cpu")
        here, there = (decode_jpegs([self._photo], place)[0].cpu().float() for place in places)
        squared_error = float(((here - there) ** 2).mean())
        return 10 * math.log10(255**2 / squared_error) if squared_error else None

    @cached_property
    def _photo(self) -> torch.Tensor:
        """A JPEG of 506x466 pixels, 4:2:0 like most."""
        return torch.frombuffer(bytearray(photo_jpeg(0, 1)), dtype=torch.uint8)

    def now_s(self) -> float:
        """The host's monotonic clock."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Sleep on the host."""
        time.sleep(seconds)
