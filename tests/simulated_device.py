"""`torch.cuda` on simulated devices, for tests of anything that launches, copies, records events or waits.

`patch` gives one device, `patch_machine` several on one clock. In a test of hypothesis, each example needs new ones:
`with simulated() as machine`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from simulated_streams import QUEUE_DEPTH, STICKY, SimulatedDevice, SimulatedEvent, SimulatedStream, VirtualClock

__all__ = [
    "STICKY",
    "SimulatedDevice",
    "SimulatedEvent",
    "SimulatedMachine",
    "SimulatedStream",
    "SimulatedTensor",
    "patch",
    "patch_machine",
    "simulated",
]


class SimulatedMachine:
    """Devices on one clock, of which one is current. `reserved_bytes` is what torch holds of each, by index."""

    def __init__(self, devices: int = 1, depth: int = QUEUE_DEPTH) -> None:
        self.clock = VirtualClock()
        self.devices = [SimulatedDevice(self.clock, index, depth) for index in range(devices)]
        self.reserved_bytes = dict.fromkeys(range(devices), 1 << 20)
        self.current = 0

    def device(self, name: Any = None) -> SimulatedDevice:
        """A device by what torch takes for one: an index, `cuda`, `cuda:1`; by default the current one."""
        index = torch.device(name).index if isinstance(name, str | torch.device) else name
        return self.devices[self.current if index is None else index]

    def current_stream(self, device: Any = None) -> SimulatedStream:
        """The current stream of a device."""
        return self.device(device).current

    def event(self, enable_timing: bool = False, **_: Any) -> SimulatedEvent:
        """A new event of no device yet."""
        return SimulatedEvent(self.current_stream, enable_timing)

    def set_device(self, device: Any) -> None:
        """Make a device the current one; like torch's, it refuses a device without an index."""
        if isinstance(device, str | torch.device) and torch.device(device).index is None:
            raise ValueError(f"Expected a torch.device with a specified index, but got:{device}")
        self.current = self.device(device).index

    def synchronize(self, device: Any = None) -> None:
        """Block until a device has done everything."""
        self.device(device).synchronize()

    @contextmanager
    def within(self, stream: SimulatedStream) -> Iterator[None]:
        """Make a stream the current one, and its device."""
        device, index = stream.device, self.current
        before, device.current, self.current = device.current, stream, device.index
        try:
            yield
        finally:
            device.current, self.current = before, index


@dataclass
class SimulatedTensor:
    """On the host at first, in pinned memory or not; a copy to a device takes so long. `used_by`: `record_stream`."""

    machine: SimulatedMachine
    copy_s: float
    pinned: bool = True
    number: int = 0
    used_by: list[SimulatedStream] = field(default_factory=list)

    def to(self, device: Any, *, non_blocking: bool = False) -> SimulatedTensor:
        """Copy it, on the current stream; only copies from pinned memory return at once."""
        stream = self.machine.current_stream(device)
        (stream.launch if self.pinned and non_blocking else stream.copy_pageable)(self.copy_s)
        return self

    def record_stream(self, stream: SimulatedStream) -> None:
        """Note that its memory is in use by a stream."""
        self.used_by.append(stream)


def patch_machine(monkeypatch: pytest.MonkeyPatch, devices: int = 1, depth: int = QUEUE_DEPTH) -> SimulatedMachine:
    """Let CUDA look initialized, with these devices."""
    machine = SimulatedMachine(devices, depth)
    for name, replaced in {
        "is_initialized": lambda: True,
        "device_count": lambda: len(machine.devices),
        "current_device": lambda: machine.current,
        "set_device": machine.set_device,
        "Event": machine.event,
        "Stream": lambda device=None, **_: machine.device(device).stream(),
        "stream": machine.within,
        "current_stream": machine.current_stream,
        "default_stream": lambda device=None: machine.device(device).default,
        "synchronize": machine.synchronize,
        "max_memory_reserved": lambda device=None: machine.reserved_bytes[machine.device(device).index],
        "memory_reserved": lambda device=None: machine.reserved_bytes[machine.device(device).index],
    }.items():
        monkeypatch.setattr(torch.cuda, name, replaced)
    handle = "_cuda_getCurrentRawStream"
    monkeypatch.setattr(torch._C, handle, lambda index: id(machine.current_stream(index)), raising=False)
    return machine


def patch(monkeypatch: pytest.MonkeyPatch, depth: int = QUEUE_DEPTH) -> SimulatedDevice:
    """Let CUDA look initialized, with one device."""
    return patch_machine(monkeypatch, depth=depth).devices[0]


@contextmanager
def simulated(devices: int = 1, depth: int = QUEUE_DEPTH) -> Iterator[SimulatedMachine]:
    """The same for an example of hypothesis, or for a part of a test."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield patch_machine(monkeypatch, devices, depth)
