"""Copies on a separate stream cost only what the step before does not hide; on the step's stream, all of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st

from loaderbench.consumers.prefetch import Copies, InLine, OnSideStream

MS = st.integers(1, 50).map(lambda ms: ms / 1e3)
STEPS = 40


class Stream:
    """Does its work in order, from the moment at which that is queued; the host queues in no time."""

    def __init__(self, _device: Any = None) -> None:
        self.free_at_s = 0.0

    def launch(self, seconds: float) -> None:
        self.free_at_s += seconds

    def wait_event(self, event: Event) -> None:
        self.free_at_s = max(self.free_at_s, event.at_s)


class Event:
    def __init__(self) -> None:
        self.at_s = 0.0

    def record(self, stream: Stream) -> None:
        self.at_s = stream.free_at_s


class Machine:
    """Two streams at most: the one that computes, and the one of a `with` block."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.computes = self.current = Stream()
        self.kept: list[tuple[Part, Stream]] = []
        for name, replaced in {
            "Stream": Stream,
            "Event": Event,
            "stream": self._within,
            "current_stream": lambda _=None: self.current,
        }.items():
            monkeypatch.setattr(torch.cuda, name, replaced)

    @contextmanager
    def _within(self, stream: Stream) -> Iterator[None]:
        before, self.current = self.current, stream
        yield
        self.current = before


class Part:
    """A part of a batch in pinned memory, whose copy takes so long."""

    def __init__(self, machine: Machine, copy_s: float, number: int) -> None:
        self.machine, self.copy_s, self.number = machine, copy_s, number

    def to(self, _device: Any, *, non_blocking: bool) -> Part:
        assert non_blocking
        self.machine.current.launch(self.copy_s)
        return self

    def record_stream(self, stream: Stream) -> None:
        self.machine.kept.append((self, stream))


def trained_s(machine: Machine, copies: Copies, copy_s: float, step_s: float) -> float:
    """Seconds per step on the computing stream; the batches come in their order."""
    seen = []
    for number in range(STEPS + 1):
        ready = copies.to_device([Part(machine, copy_s / 2, number), Part(machine, copy_s / 2, number)])
        if ready is not None:
            seen.append(ready[0].number)
            machine.computes.launch(step_s)
    assert seen == list(range(len(seen)))
    assert len(seen) >= STEPS
    return machine.computes.free_at_s / len(seen)


@given(copy_s=MS, step_s=MS)
def test_a_side_stream_hides_what_the_step_before_covers(copy_s: float, step_s: float) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        machine = Machine(monkeypatch)
        found_s = trained_s(machine, OnSideStream(torch.device("cuda")), copy_s, step_s)
        assert found_s == pytest.approx(max(copy_s, step_s) + min(copy_s, step_s) / STEPS, rel=1e-6)
        assert {stream for _, stream in machine.kept} == {machine.computes}
        assert len(machine.kept) == 2 * STEPS, "memory of each part that was trained on is kept for its step"


@given(copy_s=MS, step_s=MS)
def test_in_line_every_copy_is_exposed(copy_s: float, step_s: float) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        machine = Machine(monkeypatch)
        assert trained_s(machine, InLine(torch.device("cuda")), copy_s, step_s) == pytest.approx(copy_s + step_s)
