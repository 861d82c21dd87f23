"""A loop that computes on another device than the current one: its events lie on that one's stream."""

from __future__ import annotations

import pytest
from simulated_device import SimulatedDevice, SimulatedMachine, patch_machine

from loaderbench.consumers.cuda import CudaWaitClock
from loaderbench.consumers.device_clock import clock_of_device
from loaderbench.consumers.target import TargetConsumer
from loaderbench.cuda_use import computing_device


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> list[SimulatedDevice]:
    """Two of them on one clock; the first is current, and the second holds what torch allocated."""
    return two_devices(monkeypatch, {1: 1 << 30}).devices


def two_devices(monkeypatch: pytest.MonkeyPatch, memory_bytes: dict[int, int], current: int = 0) -> SimulatedMachine:
    machine = patch_machine(monkeypatch, devices=2)
    machine.current = current
    machine.reserved_bytes = {0: 0, 1: 0, **memory_bytes}
    return machine


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
        used.host(10e-3)
        clock.got()
        used.launch(30e-3)
        used.host(30e-3)
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


def test_a_device_that_fails_takes_no_other_s_waits_with_it(devices: list[SimulatedDevice]) -> None:
    failing, sound = devices
    clocks = {device.index: CudaWaitClock(device.index) for device in devices}
    for number in range(10):
        for clock in clocks.values():
            clock.ask()
        sound.host(2e-3)
        for clock in clocks.values():
            clock.got()
        if number == 4:
            failing.fail()
    assert clocks[1].waits_s() == pytest.approx([2e-3] * 10)
    with pytest.raises(RuntimeError, match="device-side assert"):
        clocks[0].waits_s()
