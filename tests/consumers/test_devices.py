"""A loop that computes on another device than the current one: its events lie on that one's stream."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from simulated_device import SimulatedDevice, SimulatedEvent, patch

from loaderbench.consumers.device_clock import clock_of_device
from loaderbench.consumers.target import TargetConsumer
from loaderbench.cuda_use import computing_device


class EventOfStream(SimulatedEvent):
    """It belongs to the device of the stream on which it is recorded first."""

    devices: list[SimulatedDevice]

    def record(self, stream: Any = None) -> None:
        self.device = self.devices[stream]
        super().record(stream)


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> list[SimulatedDevice]:
    """Two of them on one clock; the first is current, and holds what `memory` says."""
    return two_devices(monkeypatch, {1: 1 << 30})


def two_devices(
    monkeypatch: pytest.MonkeyPatch, memory_bytes: dict[int, int], current: int = 0
) -> list[SimulatedDevice]:
    found = [patch(monkeypatch), SimulatedDevice()]

    def event(**options: Any) -> EventOfStream:
        made = EventOfStream(found[current], **options)
        made.devices = found
        return made

    for name, replaced in {
        "Event": event,
        "current_stream": lambda device=None: current if device is None else device,
        "current_device": lambda: current,
        "device_count": lambda: 2,
        "max_memory_reserved": lambda index: memory_bytes.get(index, 0),
        "memory_reserved": lambda index: memory_bytes.get(index, 0),
    }.items():
        monkeypatch.setattr(torch.cuda, name, replaced)
    return found


@pytest.mark.parametrize(
    ("memory_bytes", "current", "used"),
    [
        ({}, 1, 1),
        ({1: 5}, 0, 1),
        ({0: 512, 1: 1 << 30}, 0, 1),
        ({0: 1 << 30, 1: 1 << 30}, 0, 0),
        ({0: 1 << 30, 1: 1 << 30}, 1, 1),
    ],
)
def test_a_loop_computes_where_it_holds_most_memory(
    monkeypatch: pytest.MonkeyPatch, memory_bytes: dict[int, int], current: int, used: int
) -> None:
    two_devices(monkeypatch, memory_bytes, current)
    assert computing_device() == used


def test_waits_are_those_of_the_device_that_computes(devices: list[SimulatedDevice]) -> None:
    current, used = devices
    clock = clock_of_device()
    assert clock is not None
    for _ in range(20):
        clock.ask()
        _pass(devices, 10e-3)
        clock.got()
        used.launch(30e-3)
        _pass(devices, 30e-3)
    used.synchronize()
    assert clock.waits_s()[1:] == pytest.approx([10e-3] * 19)
    assert (current.events, used.events) == (0, 40)


def test_a_step_runs_no_further_ahead_on_another_device_than_on_the_current_one(
    devices: list[SimulatedDevice],
) -> None:
    _, used = devices
    consumer = TargetConsumer(lambda _: used.launch(10e-3))
    for _ in range(50):
        consumer.consume(None, 1)
    assert used.now_s > 0.4


def _pass(devices: list[SimulatedDevice], seconds: float) -> None:
    for device in devices:
        device.host(seconds)
