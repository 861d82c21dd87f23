"""A batch that is finished on the device first: the consumer gets the result, and the host does not run away."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from simulated_device import simulated

from loaderbench.consumers import NoConsumer, WithNote, WithPrecision
from loaderbench.consumers.cuda import CudaWaitClock
from loaderbench.consumers.prepared import PreparedFirst


class Step(NoConsumer):
    def __init__(self) -> None:
        super().__init__()
        self.taken: list[Any] = []
        self.note, self.computes_in = "copied", "bfloat16"

    def consume(self, batch: Any, samples: int) -> None:
        self.taken.append((batch, samples))


def test_the_consumer_gets_the_finished_batch_and_both_have_a_say() -> None:
    step = Step()
    prepare: Any = lambda batch: batch * 2  # noqa: E731 - it gets an attribute
    prepare.note = "1 of 4 on the CPU"
    prepared = PreparedFirst(step, prepare, "cpu")
    prepared.consume(21, 4)
    assert step.taken == [(42, 4)]
    assert isinstance(prepared, WithNote)
    assert isinstance(prepared, WithPrecision)
    assert (prepared.note, prepared.computes_in) == ("copied. 1 of 4 on the CPU", "bfloat16")
    assert prepared.wait_clock is step.wait_clock
    assert PreparedFirst(NoConsumer(), lambda batch: batch, "cpu").computes_in == ""


def test_decoding_alone_is_at_most_two_batches_ahead_of_the_gpu() -> None:
    with simulated() as machine:
        device = machine.devices[0]
        prepared = PreparedFirst(NoConsumer(), lambda _: device.launch(0.01), "cuda:0")
        for _ in range(50):
            prepared.consume(None, 32)
        assert 0.46 <= machine.clock.now_s <= 0.5, "the rate is the GPU's, not that of queueing"


MS = st.floats(0.0, 20.0).map(lambda ms: ms / 1e3)


@given(steps=st.lists(st.tuples(MS, MS, MS), min_size=1, max_size=12))
def test_decoding_is_a_part_of_the_step_and_none_of_the_wait(steps: list[tuple[float, float, float]]) -> None:
    """Loading, decoding and training of each batch take so long; the wait is when the GPU had nothing of both to do."""
    with simulated(depth=10_000) as machine:
        device, left = machine.devices[0], list(steps)
        clock, windows = CudaWaitClock(), []

        class Training(NoConsumer):
            def consume(self, batch: Any, samples: int) -> None:
                device.launch(batch[2])

        def decode(batch: Any) -> Any:
            device.launch(batch[1])
            return batch

        prepared = PreparedFirst(Training(), decode, "cuda:0")
        for batch in left:
            asked_s = machine.clock.now_s
            clock.ask()
            machine.clock.host(batch[0])
            clock.got()
            windows.append((asked_s, machine.clock.now_s))
            prepared.consume(batch, 1)
        machine.synchronize()
        assert sum(clock.waits_s()) == pytest.approx(device.default.idle_within(windows), abs=1e-9)


def test_a_note_may_be_missing() -> None:
    assert PreparedFirst(NoConsumer(), SimpleNamespace(note=""), "cpu").note == ""  # type: ignore[arg-type]
