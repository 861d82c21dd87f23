"""Copies on a separate stream cost only what the step before does not hide; on the step's stream, all of it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, strategies as st
from simulated_device import STICKY, SimulatedMachine, SimulatedTensor, patch_machine, simulated

from loaderbench.consumers.training_step import Copies, InLine, OnSideStream

MS = st.integers(1, 50).map(lambda ms: ms / 1e3)
STEPS = 40


def trained(
    machine: SimulatedMachine, copies: Copies, copy_s: float, step_s: float, **kind: bool
) -> list[SimulatedTensor]:
    """Train on the device that copies go to; the tensors that were trained on, in the order of their batches."""
    computes, seen = machine.current_stream(), list[SimulatedTensor]()
    for number in range(STEPS + 1):
        ready = copies.to_device([SimulatedTensor(machine, copy_s / 2, number=number, **kind) for _ in range(2)])
        if ready is not None:
            seen += ready
            computes.launch(step_s)
    assert [tensor.number for tensor in seen[::2]] == list(range(len(seen) // 2))
    assert len(seen) >= 2 * STEPS
    return seen


@given(copy_s=MS, step_s=MS)
def test_a_side_stream_hides_what_the_step_before_covers(copy_s: float, step_s: float) -> None:
    with simulated() as machine:
        seen = trained(machine, OnSideStream(torch.device("cuda")), copy_s, step_s)
        computes = machine.current_stream()
        per_step_s = computes.free_at_s / STEPS
        assert per_step_s == pytest.approx(max(copy_s, step_s) + min(copy_s, step_s) / STEPS, rel=1e-6)
        assert computes.stalled_s == pytest.approx(copy_s + (STEPS - 1) * max(0.0, copy_s - step_s), rel=1e-6)
        assert all(tensor.used_by == [computes] for tensor in seen), "memory is kept for the step that trains on it"
        assert machine.clock.blocked_s == 0


@given(copy_s=MS, step_s=MS)
def test_in_line_every_copy_is_exposed(copy_s: float, step_s: float) -> None:
    with simulated() as machine:
        trained(machine, InLine(torch.device("cuda")), copy_s, step_s)
        computes = machine.current_stream()
        assert computes.free_at_s / (STEPS + 1) == pytest.approx(copy_s + step_s)
        assert len(machine.devices[0].streams) == 1
        assert machine.clock.blocked_s == 0


@given(copy_s=MS, step_s=MS)
def test_from_pageable_memory_a_side_stream_hides_the_step_but_holds_up_the_host(copy_s: float, step_s: float) -> None:
    with simulated() as machine:
        trained(machine, OnSideStream(torch.device("cuda")), copy_s, step_s, pinned=False)
        assert machine.clock.blocked_s == pytest.approx((STEPS + 1) * copy_s)


def test_batches_go_to_the_device_that_was_asked_for_and_the_current_one_stays() -> None:
    with simulated(devices=2) as machine:
        first, second = machine.devices
        copies = OnSideStream(torch.device("cuda:1"))
        for number in range(3):
            copies.to_device([SimulatedTensor(machine, 1e-3, number=number)])
        assert (first.events, first.free_at_s, machine.current) == (0, 0.0, 0)
        assert [len(stream.busy) for stream in second.streams] == [0, 3]
        assert second.default.stalled_s > 0, "the stream that computes waits for its copies"


def test_an_error_of_the_device_is_raised_where_a_copy_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = patch_machine(monkeypatch)
    copies = OnSideStream(torch.device("cuda"))
    copies.to_device([SimulatedTensor(machine, 1e-3)])
    machine.devices[0].fail()
    with pytest.raises(RuntimeError, match=STICKY):
        copies.to_device([SimulatedTensor(machine, 1e-3)])
    assert machine.current_stream() is machine.devices[0].default
