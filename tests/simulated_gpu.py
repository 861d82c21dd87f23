"""The GPU of a checkup on the simulated device: sound, with a clock or an NVML that a test may spoil."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from simulated_device import SimulatedDevice

from loaderbench.consumers import WaitClock
from loaderbench.consumers.cuda import CudaWaitClock
from loaderbench.gpu_checkup.records import TimedEvent, Value
from loaderbench.records import Reasons

CYCLES_PER_S = 1.7e9
LAUNCH_S = 4e-6
DECODED_PER_S = 2_000.0
BYTES_PER_S = {True: 25e9, False: 8e9}


@dataclass
class SimulatedGpu:
    """`make_clock` makes the clock that is checked; `oversleeps_s` is what the system adds to each sleep.

    `psnr_db` is the PSNR of its decoded JPEGs against those of the CPU.
    """

    device: SimulatedDevice
    make_clock: Callable[[], WaitClock] = CudaWaitClock
    oversleeps_s: float = 80e-6
    psnr_db: float | None = 38.0

    def launch_kernel(self) -> None:
        self.device.launch(1e-6)

    def spin(self, cycles: int) -> None:
        self.device.host(LAUNCH_S)
        self.device.launch(cycles / CYCLES_PER_S)

    def event(self) -> TimedEvent:
        event: TimedEvent = torch.cuda.Event(enable_timing=True)
        return event

    def synchronize(self) -> None:
        self.device.synchronize()

    def wait_clock(self) -> WaitClock:
        return self.make_clock()

    def prepare_copy(self, size_bytes: int, *, pinned: bool) -> Any:
        return size_bytes, pinned

    def copy(self, prepared: Any) -> None:
        size_bytes, pinned = prepared
        copy = self.device.launch if pinned else self.device.copy_pageable
        copy(size_bytes / BYTES_PER_S[pinned])

    def decode(self, images: int) -> None:
        self.device.host(LAUNCH_S)
        self.device.launch(images / DECODED_PER_S)

    def decoded_psnr_db(self) -> float | None:
        self.decode(1)
        return self.psnr_db

    def now_s(self) -> float:
        return self.device.now_s

    def sleep(self, seconds: float) -> None:
        self.device.host(seconds + self.oversleeps_s)


def nvml_of(device: SimulatedDevice, **spoiled: Value) -> Callable[[], tuple[dict[str, Value], Reasons]]:
    """NVML of this device: it is utilized while anything is queued. What `spoiled` names reads so instead."""

    def read() -> tuple[dict[str, Value], Reasons]:
        values = sound_nvml()[0] | {"utilization_percent": 100.0 if device.free_at_s > device.now_s else 0.0}
        return values | spoiled, {}

    return read


def sound_nvml() -> tuple[dict[str, Value], Reasons]:
    link: dict[str, Value] = {
        "pcie_generation": 4, "pcie_max_generation": 4, "pcie_width": 16, "pcie_max_width": 16,
    }  # fmt: skip
    return {"utilization_percent": 100.0, "memory_used_bytes": 10**9, "power_w": 300.0, **link}, {}
