"""A batch that is finished on the device first: the consumer gets the result, and the host does not run away."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from simulated_device import simulated

from loaderbench.consumers import NoConsumer, WithNote, WithPrecision
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


def test_a_note_may_be_missing() -> None:
    assert PreparedFirst(NoConsumer(), SimpleNamespace(note=""), "cpu").note == ""  # type: ignore[arg-type]
