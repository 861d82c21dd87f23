"""Loops of any shape on a simulated device: what is reported is what the device did, and the loop is not changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings, strategies as st
from simulated_device import SimulatedMachine, SimulatedTensor, simulated
from simulated_streams import Span

from loaderbench import Profiler
from loaderbench.consumers.cuda import CudaWaitClock
from loaderbench.consumers.training_step import Copies, InLine, OnSideStream
from loaderbench.profiler.device_stages import DeviceStages
from loaderbench.recorder.batches import STEADY

TRANSFER = 1
MS = st.integers(0, 30).map(lambda ms: ms / 1e3)
DEVICE = torch.device("cuda")


@dataclass(frozen=True)
class Step:
    """One turn of a loop: how long `next()` takes, the copy, and kernels with the host's time to launch each."""

    load_s: float
    copy_s: float
    pinned: bool
    kernels: list[tuple[float, float]]


STEPS = st.lists(
    st.builds(Step, load_s=MS, copy_s=MS, pinned=st.booleans(), kernels=st.lists(st.tuples(MS, MS), max_size=4)),
    min_size=1,
    max_size=25,
)
LOOPS = st.fixed_dictionaries({"steps": STEPS, "side_stream": st.booleans(), "depth": st.integers(2, 12)})


def copies_of(side_stream: bool) -> Copies:
    return OnSideStream(DEVICE) if side_stream else InLine(DEVICE)


def transfer(machine: SimulatedMachine, copies: Copies, step: Step) -> None:
    copies.to_device([SimulatedTensor(machine, step.copy_s, step.pinned)])


def compute(machine: SimulatedMachine, step: Step) -> None:
    for launch_s, kernel_s in step.kernels:
        machine.clock.host(launch_s)
        machine.current_stream().launch(kernel_s)


@given(loop=LOOPS)
def test_the_data_wait_is_the_time_in_next_that_the_device_was_idle(loop: dict) -> None:
    with simulated(depth=loop["depth"]) as machine:
        clock, copies, windows = CudaWaitClock(), copies_of(loop["side_stream"]), list[Span]()
        for step in loop["steps"]:
            asked_s = machine.clock.now_s
            clock.ask()
            machine.clock.host(step.load_s)
            clock.got()
            windows.append((asked_s, machine.clock.now_s))
            transfer(machine, copies, step)
            compute(machine, step)
        machine.synchronize()
        assert sum(clock.waits_s()) == pytest.approx(machine.current_stream().idle_within(windows), abs=1e-9)


@given(loop=LOOPS)
def test_the_stage_transfer_is_the_part_of_the_copies_that_no_computing_hides(loop: dict) -> None:
    with simulated(depth=10_000) as machine:
        stages, copies, windows = DeviceStages(CudaWaitClock()), copies_of(loop["side_stream"]), list[Span]()
        for step in loop["steps"]:
            machine.clock.host(step.load_s)
            began_s = machine.clock.now_s
            stages.enter(TRANSFER)
            transfer(machine, copies, step)
            stages.leave()
            windows.append((began_s, machine.clock.now_s))
            compute(machine, step)
            stages.end_body(STEADY)
        machine.synchronize()
        stages.end_body(STEADY)
        computes = machine.current_stream()
        in_line_s = 0.0 if loop["side_stream"] else sum(step.copy_s for step in loop["steps"])
        held_up_s = computes.idle_within(windows)  # by a pageable copy to the other stream
        assert stages.seconds(STEADY, TRANSFER) == pytest.approx(in_line_s + computes.stalled_s + held_up_s, abs=1e-9)


@settings(max_examples=25)
@given(loop=LOOPS)
def test_a_profiled_loop_is_the_same_loop_on_host_and_device(loop: dict) -> None:
    """Same kernels at the same moments, and no time of the host in any call that waits for the device."""
    alone, profiled = run(loop, None), run(loop, Profiler(warmup=2))
    assert profiled == alone


def run(loop: dict, prof: Profiler | None) -> list[object]:
    """The loop's time on the host, what of it was blocked, and all work of each stream, at the end of its last step."""
    with simulated(depth=loop["depth"]) as machine:
        copies = copies_of(loop["side_stream"])

        def loader() -> Iterator[Step]:
            for step in loop["steps"]:
                machine.clock.host(step.load_s)
                yield step

        if prof is None:
            for step in loader():
                transfer(machine, copies, step)
                compute(machine, step)
            return what_was_done(machine)
        with prof:
            for step in prof.iter(loader()):
                with prof.stage("transfer"):
                    transfer(machine, copies, step)
                compute(machine, step)
            return what_was_done(machine)


def what_was_done(machine: SimulatedMachine) -> list[object]:
    (device,) = machine.devices
    return [machine.clock.now_s, machine.clock.blocked_s, *((s.busy.copy(), s.stalls.copy()) for s in device.streams)]
