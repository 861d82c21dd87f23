"""A loop that computes on a GPU, simulated: stages and overhead are the device's, and nothing ever waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from simulated_device import SimulatedDevice, patch

from loaderbench import Profiler
from loaderbench.consumers.cuda import CudaWaitClock
from loaderbench.profiler.device_stages import DeviceStages
from loaderbench.profiler.measured import STAGES_OF_DEVICE
from loaderbench.recorder import loop
from loaderbench.recorder.batches import STEADY, WARMUP
from loaderbench.recorder.overhead import loop_s_per_batch, recorder_s_per_batch
from loaderbench.result import Run
from loaderbench.tracing import clock

Body = Callable[[SimulatedDevice, Profiler], None]
OUTER, INNER = 1, 2
MS = st.integers(1, 40).map(lambda ms: ms / 1e3)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> SimulatedDevice:
    return on_its_clock(monkeypatch)


def on_its_clock(monkeypatch: pytest.MonkeyPatch) -> SimulatedDevice:
    """A device, and a host whose clocks are the device's virtual one."""
    found = patch(monkeypatch)
    monkeypatch.setattr(loop, "_now_s", lambda: found.now_s)
    for name in ("now_s", "cpu_now_s"):
        monkeypatch.setattr(clock, name, lambda: found.now_s)
    return found


def profiled(device: SimulatedDevice, body: Body, *, batches: int = 40, load_s: float = 1e-3) -> Run:
    def loader() -> Iterator[list[int]]:
        for _ in range(batches):
            device.host(load_s)
            yield [0] * 4

    with Profiler(warmup=5) as prof:
        for _ in prof.iter(loader()):
            body(device, prof)
        device.synchronize()
    return prof.result


def transfer_share(run: Run) -> float:
    (trial,) = run.trials
    assert trial.step_stages is not None
    assert trial.steady_s
    return (trial.step_stages["transfer"].wall_s or 0.0) * (trial.batches or 0) / trial.steady_s


def pageable(device: SimulatedDevice, prof: Profiler) -> None:
    with prof.stage("transfer"):
        device.copy_pageable(1e-3)
    device.launch(40e-3)


def pinned(device: SimulatedDevice, prof: Profiler) -> None:
    with prof.stage("transfer"):
        device.launch(30e-3)
    device.launch(10e-3)
    device.host(40e-3)


def test_a_pageable_copy_takes_no_blame_for_the_work_that_it_waits_for(device: SimulatedDevice) -> None:
    run = profiled(device, pageable)
    assert transfer_share(run) == pytest.approx(1 / 41, rel=0.1)
    assert run.verdict.bound == "compute"
    assert STAGES_OF_DEVICE in run.notes


def test_a_pinned_copy_that_nothing_hides_bounds_the_loop_though_the_host_does_not_wait(
    device: SimulatedDevice,
) -> None:
    run = profiled(device, pinned)
    assert transfer_share(run) == pytest.approx(30 / 41, rel=0.1)
    assert run.verdict.bound == "transfer"
    assert device.blocked_s == pytest.approx(0, abs=0.05), "of the loop's own end alone"


@given(outer_s=MS, inner_s=MS, other_s=MS)
def test_a_nested_stage_is_none_of_the_one_around_it(outer_s: float, inner_s: float, other_s: float) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        device = patch(monkeypatch)
        stages = DeviceStages(CudaWaitClock())
        for _ in range(10):
            stages.enter(OUTER)
            device.launch(outer_s / 2)
            stages.enter(INNER)
            device.launch(inner_s)
            stages.leave()
            device.launch(outer_s / 2)
            stages.leave()
            device.launch(other_s)
            device.host((outer_s + inner_s + other_s) / 2)
            stages.end_body(STEADY)
        assert device.blocked_s == 0
        assert len(stages._unread) > 0, "the device is behind"
        assert (stages.seconds(STEADY, OUTER) or 0) / 10 == pytest.approx(outer_s)
        assert (stages.seconds(STEADY, INNER) or 0) / 10 == pytest.approx(inner_s)
        assert stages.seconds(WARMUP, OUTER) is None


def test_the_wait_for_data_is_none_of_a_stage_around_the_request(device: SimulatedDevice) -> None:
    def loader() -> Iterator[list[int]]:
        for _ in range(40):
            device.host(20e-3)
            yield [0] * 4

    with Profiler(warmup=5) as prof:
        batches = iter(prof.iter(loader()))
        for _ in range(40):
            with prof.stage("transfer"):
                next(batches)
                device.launch(1e-3)
            device.launch(4e-3)
        next(batches, None)
    (trial,) = prof.result.trials
    assert trial.step_stages is None, "the stage ends where the request begins"
    assert prof.result.verdict.bound == "input"


def test_what_is_captured_in_a_graph_is_timed_by_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    device, capturing = patch(monkeypatch), [False]
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[0])
    stages = DeviceStages(CudaWaitClock())

    def run_stages(before: bool, after: bool) -> None:
        capturing[0] = before
        stages.enter(OUTER)
        device.launch(1e-3)
        capturing[0] = after
        stages.leave()
        capturing[0] = False
        stages.end_body(STEADY)

    for before, after in ((False, False), (True, True), (True, False), (False, True), (False, False)):
        run_stages(before, after)
    device.synchronize()
    stages.end_body(STEADY)
    assert stages.seconds(STEADY, OUTER) == pytest.approx(2e-3)
    assert not stages._unread


def test_after_the_last_step_that_is_recorded_no_event_is_put_on_the_stream(device: SimulatedDevice) -> None:
    recorder = loop.LoopRecorder(warmup=0, steps=10)
    recorder.events = CudaWaitClock()
    taken = list(recorder.epoch(lambda: iter([[0]] * 200)))
    assert len(taken) == 200
    assert device.events < 30


@pytest.mark.parametrize("overhead_s_per_batch", [loop_s_per_batch, recorder_s_per_batch])
def test_the_overhead_holds_the_events(overhead_s_per_batch: Any) -> None:
    made: list[SlowEvents] = []

    def make() -> SlowEvents:
        made.append(SlowEvents())
        return made[-1]

    found_s = overhead_s_per_batch(make)
    least_s = min(events.spent_s / events.batches for events in made)
    assert least_s > 2 * SlowEvents.MARK_S
    assert found_s > 0.9 * least_s


class SlowEvents:
    """A clock of a device whose marks take long, by its own count."""

    MARK_S = 20e-6

    def __init__(self) -> None:
        self._waits, self.batches, self.spent_s = 0, 0, 0.0

    def ask(self) -> None:
        self._spin()

    def got(self) -> None:
        self._spin()
        self._waits += 1
        self.batches += 1

    def waits_s(self) -> list[float]:
        return [0.0] * self._waits

    def take_s(self) -> list[float]:
        found, self._waits = [0.0] * self._waits, 0
        return found

    def _spin(self) -> None:
        began_s = time.perf_counter()
        while time.perf_counter() - began_s < self.MARK_S:
            pass
        self.spent_s += time.perf_counter() - began_s
