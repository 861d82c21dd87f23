"""The simulated device does what a CUDA device does, wherever tests rely on it."""

from __future__ import annotations

import pytest
import torch
from simulated_device import SimulatedTensor, patch, patch_machine


def test_a_stream_does_its_work_in_order_and_streams_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    device, side = patch(monkeypatch), torch.cuda.Stream()
    device.launch(10e-3)
    with torch.cuda.stream(side):
        device.launch(4e-3)
        device.launch(3e-3)
    assert (device.default.busy, side.busy) == ([(0, 10e-3)], [(0, 4e-3), (4e-3, 7e-3)])
    assert (device.queued, device.now_s) == (3, 0.0)
    torch.cuda.synchronize()
    assert (device.queued, device.now_s, device.blocked_s) == (0, 10e-3, 10e-3)


def test_a_stream_that_waits_for_an_event_is_neither_busy_nor_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    device, side, done = patch(monkeypatch), torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side):
        device.launch(10e-3)
        done.record()
    device.host(1e-3)
    device.launch(2e-3)
    device.current.wait_event(done)
    device.launch(1e-3)
    assert device.default.busy == [(1e-3, 3e-3), (10e-3, 11e-3)]
    assert device.default.stalls == [(3e-3, 10e-3)]
    assert device.default.idle_within([(0.0, 12e-3)]) == pytest.approx(2e-3)
    assert device.now_s == 1e-3, "the host waits for nothing"


def test_a_pageable_copy_blocks_the_host_behind_all_that_its_stream_has_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = patch_machine(monkeypatch)
    machine.devices[0].launch(10e-3)
    SimulatedTensor(machine, 2e-3).to("cuda", non_blocking=True)
    assert machine.clock.now_s == 0.0
    SimulatedTensor(machine, 2e-3, pinned=False).to("cuda", non_blocking=True)
    assert machine.clock.now_s == machine.clock.blocked_s == 14e-3


def test_a_full_queue_blocks_the_host_until_one_kernel_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    device = patch(monkeypatch, depth=3)
    for _ in range(3):
        device.launch(5e-3)
    assert device.now_s == 0.0
    device.launch(5e-3)
    assert (device.now_s, device.queued) == (5e-3, 3)


def test_an_event_is_read_only_when_it_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    device = patch(monkeypatch)
    first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    device.launch(5e-3)
    second.record()
    assert not second.query()
    with pytest.raises(RuntimeError, match="must be completed"):
        first.elapsed_time(second)
    second.synchronize()
    assert first.elapsed_time(second) == pytest.approx(5.0)


def test_an_event_and_an_error_belong_to_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = patch_machine(monkeypatch, devices=2)
    event = torch.cuda.Event()
    event.record()
    with pytest.raises(RuntimeError, match="does not match"):
        event.record(machine.devices[1].default)
    machine.devices[0].fail()
    for call in (event.query, event.synchronize, torch.cuda.synchronize, lambda: machine.devices[0].launch(1e-3)):
        with pytest.raises(RuntimeError, match="device-side assert"):
            call()
    torch.cuda.set_device(1)
    torch.cuda.synchronize()
    machine.devices[1].launch(1e-3)
