"""A step of the user's own: timed by the host until it uses CUDA, and by the device from then on."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from simulated_device import SimulatedDevice, patch

from loaderbench.consumers.target import TargetConsumer


def waits_of(consumer: TargetConsumer, device: SimulatedDevice, load_s: float, steps: int) -> list[float]:
    for _ in range(steps):
        consumer.wait_clock.ask()
        device.host(load_s)
        consumer.wait_clock.got()
        consumer.consume(None, 1)
    return consumer.wait_clock.waits_s()


def test_what_the_device_computes_while_a_batch_is_loaded_is_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    device = patch(monkeypatch)

    def step(_: Any) -> None:
        device.host(10e-3)
        device.launch(40e-3)

    waits_s = waits_of(TargetConsumer(step), device, load_s=31e-3, steps=40)
    assert waits_s[1:] == pytest.approx([0.0] * 39, abs=1e-9), "the device is never idle while a batch is loaded"


def test_the_waits_before_cuda_was_used_are_the_host_s(monkeypatch: pytest.MonkeyPatch) -> None:
    device, used = patch(monkeypatch), list[bool]()
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: bool(used))

    def step(_: Any) -> None:
        used.append(True)
        device.launch(1e-3)

    waits_s = waits_of(TargetConsumer(step), device, load_s=30e-3, steps=5)
    assert len(waits_s) == 5
    assert waits_s[0] < 30e-3, "by the real clock, which did not wait"
    assert waits_s[1:] == pytest.approx([29e-3] * 4)


def test_a_step_on_a_device_runs_no_more_than_a_few_steps_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    device = patch(monkeypatch)
    waits_of(TargetConsumer(lambda _: device.launch(10e-3)), device, load_s=0.0, steps=50)
    assert device.now_s > 0.4
