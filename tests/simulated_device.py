"""A CUDA device on a virtual clock: one stream that does its work in order, and events on it.

`patch` puts it below `torch.cuda.Event`. The host's time passes only where a test says so, in `host`, or where a real
host would block: in `synchronize`, and in a copy from pageable memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import torch

STICKY = "CUDA error: device-side assert triggered"


@dataclass
class SimulatedDevice:
    """`now_s` is the host's time, `free_at_s` the end of all work that is queued, `idle_s` when none was so far.

    `blocked_s` is the host's time in calls that waited for the device, `events` how many were recorded.

    After `fail`, every call raises, as CUDA does after an error in a kernel.
    """

    now_s: float = 0.0
    free_at_s: float = 0.0
    idle_s: float = 0.0
    blocked_s: float = 0.0
    events: int = 0
    _ends_s: list[float] = field(default_factory=list)
    _failed: bool = False

    def host(self, seconds: float) -> None:
        """Spend time on the host."""
        self.now_s += seconds

    def launch(self, seconds: float) -> None:
        """Queue a kernel, or a copy from pinned memory; returns at once."""
        self.check()
        began_s = max(self.now_s, self.free_at_s)
        self.idle_s += began_s - self.free_at_s
        self.free_at_s = began_s + seconds
        self._ends_s.append(self.free_at_s)

    def copy_pageable(self, seconds: float) -> None:
        """Copy from pageable memory: the host waits for the stream, and for the copy."""
        self.launch(seconds)
        self._block_until(self.free_at_s)

    def synchronize(self) -> None:
        """Wait for all that is queued."""
        self.check()
        self._block_until(self.free_at_s)

    @property
    def queued(self) -> int:
        """How many kernels are queued or running."""
        return sum(end_s > self.now_s for end_s in self._ends_s)

    def fail(self) -> None:
        """Let a kernel fail."""
        self._failed = True

    def check(self) -> None:
        """Raise the error of the device, if it has one."""
        if self._failed:
            raise RuntimeError(STICKY)

    def _block_until(self, moment_s: float) -> None:
        self.blocked_s += max(0.0, moment_s - self.now_s)
        self.now_s = max(self.now_s, moment_s)


@dataclass
class SimulatedEvent:
    """Reached when the work queued before it is done."""

    device: SimulatedDevice
    enable_timing: bool = False
    at_s: float | None = None

    def record(self, stream: Any = None) -> None:
        """Queue it."""
        self.device.check()
        self.device.events += 1
        self.at_s = max(self.device.now_s, self.device.free_at_s)

    def query(self) -> bool:
        """Whether it is reached."""
        self.device.check()
        return self.at_s is None or self.at_s <= self.device.now_s

    def synchronize(self) -> None:
        """Wait until it is reached."""
        self.device.check()
        self.device._block_until(self.at_s or 0.0)

    def elapsed_time(self, later: SimulatedEvent) -> float:
        """Milliseconds between two that were recorded with timing."""
        self.device.check()
        assert self.enable_timing, "recorded without timing"
        assert self.at_s is not None, "not recorded"
        assert later.at_s is not None, "not recorded"
        return (later.at_s - self.at_s) * 1e3


def patch(monkeypatch: pytest.MonkeyPatch) -> SimulatedDevice:
    """Let CUDA look initialised, with this device for its events."""
    device = SimulatedDevice()
    event: Callable[..., SimulatedEvent] = partial(SimulatedEvent, device)
    monkeypatch.setattr(torch.cuda, "Event", event)
    for name, replaced in {
        "is_initialized": lambda: True,
        "current_stream": lambda device=None: device,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "max_memory_reserved": lambda _: 1 << 20,
    }.items():
        monkeypatch.setattr(torch.cuda, name, replaced)
    return device
