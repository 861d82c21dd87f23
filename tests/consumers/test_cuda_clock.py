"""Waits by events, on a simulated device: what it was idle for around `next()`, without ever making the host wait."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, strategies as st
from simulated_device import STICKY, SimulatedDevice, patch

from loaderbench import Profiler
from loaderbench.consumers.cuda import READ_FROM, CudaWaitClock

MS = st.integers(0, 40).map(lambda ms: ms / 1e3)
STEPS = st.lists(st.tuples(MS, st.lists(st.tuples(MS, MS), max_size=4)), min_size=1, max_size=30)
"""Of each step: how long `next()` takes, and the kernels, each with the host's time to launch it and its own."""


@given(steps=STEPS)
def test_the_waits_are_what_the_device_was_idle_for_around_next(
    steps: list[tuple[float, list[tuple[float, float]]]],
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        device = patch(monkeypatch)
        clock, idle_s = CudaWaitClock(0), []
        for wait_s, kernels in steps:
            drained_s = max(device.now_s, device.free_at_s)
            clock.ask()
            device.host(wait_s)
            clock.got()
            idle_s.append(max(0.0, device.now_s - drained_s))
            for launch_s, kernel_s in kernels:
                device.host(launch_s)
                device.launch(kernel_s)
        assert device.blocked_s == 0
        device.synchronize()
        assert clock.waits_s() == pytest.approx(idle_s, abs=1e-9)


@given(steps=STEPS)
def test_waits_that_are_taken_early_and_late_are_the_same(
    steps: list[tuple[float, list[tuple[float, float]]]],
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        device = patch(monkeypatch)
        early, late, taken = CudaWaitClock(0), CudaWaitClock(), list[float]()
        for wait_s, kernels in steps:
            for clock in (early, late):
                clock.ask()
            device.host(wait_s)
            for clock in (early, late):
                clock.got()
            for launch_s, kernel_s in kernels:
                device.host(launch_s)
                device.launch(kernel_s)
            taken += early.take_s()
        assert device.blocked_s == 0
        device.synchronize()
        assert [*taken, *early.take_s()] == pytest.approx(late.waits_s(), abs=1e-9)
        assert len(late.waits_s()) == len(steps)


def trained(device: SimulatedDevice, prof: Profiler, *, fails_at: int) -> None:
    for number, _ in enumerate(prof.iter([[0] * 4 for _ in range(40)])):
        device.launch(4e-3)
        device.host(2e-3)
        if number == fails_at:
            device.fail()
            raise ValueError("planted")


def test_an_error_of_the_device_buries_neither_the_user_s_own_nor_what_was_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device, prof = patch(monkeypatch), Profiler(warmup=5)
    with pytest.raises(ValueError, match="planted"), prof:
        trained(device, prof, fails_at=30)
    (trial,) = prof.result.trials
    assert trial.status == "completed"
    assert 8 <= (trial.batches or 0) <= 15, "those that the device had reported: it is half as fast as the host"


def test_a_trial_s_own_clock_raises_the_error_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    device, clock = patch(monkeypatch), CudaWaitClock()
    clock.ask()
    clock.got()
    device.fail()
    clock.ask()
    clock.got()
    with pytest.raises(RuntimeError, match=STICKY):
        clock.waits_s()


def test_nothing_is_asked_of_a_device_while_a_graph_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    device, clock, capturing = patch(monkeypatch), CudaWaitClock(), [False]
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[0])
    for _ in range(READ_FROM):
        clock.ask()
        clock.got()
    capturing[0] = True
    device.fail()  # every call of an event would now raise
    clock.ask()
    clock.got()
    assert clock.take_s() == []
    with pytest.raises(RuntimeError, match="a CUDA graph was captured"):
        clock.waits_s()


def test_a_trial_of_many_batches_uses_few_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial takes its waits at its end only. They are read while it runs."""
    device, made, event = patch(monkeypatch), list[object](), torch.cuda.Event

    def counted(**how: bool) -> object:
        made.append(event(**how))
        return made[-1]

    monkeypatch.setattr(torch.cuda, "Event", counted)
    clock = CudaWaitClock(0)
    for _ in range(2_000):
        clock.ask()
        device.host(1e-3)
        clock.got()
        device.launch(5e-4)
    assert len(made) <= 2 * (READ_FROM + 1)
    assert len(clock.waits_s()) == 2_000
