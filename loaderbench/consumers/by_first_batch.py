"""A GPU consumer for any dataset: train if the first batch allows it, else copy batches and emulate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from loaderbench.consumers.accelerator import device_here
from loaderbench.consumers.batch_parts import changed, why_no_classifier
from loaderbench.consumers.kind import Consumer, WaitClock, WithPrecision


class ChosenClock:
    """A wait clock that runs two clocks until one of them is chosen, and only that one afterwards."""

    def __init__(self, *clocks: WaitClock) -> None:
        self._clocks = clocks

    def choose(self, clock: WaitClock) -> None:
        """Keep only this clock."""
        self._clocks = (clock,)

    def ask(self) -> None:
        """Record the time before `next()`."""
        for clock in self._clocks:
            clock.ask()

    def got(self) -> None:
        """Record the time after `next()`."""
        for clock in self._clocks:
            clock.got()

    def waits_s(self) -> list[float]:
        """Return the wait of every batch so far, in seconds; may block until the device has reported them."""
        return self._clocks[0].waits_s()


def _type_of(step: Consumer) -> str:
    return step.computes_in if isinstance(step, WithPrecision) else ""


class ByFirstBatch:
    """Run a training step if the first batch fits it; else copy each batch to the device and emulate a GPU.

    `note` gives the reason for not training, once the first batch is known. `computes_in` is the data type of the step
    if it trains.
    """

    def __init__(self, step: Consumer, emulated: Consumer, device: str, rate: float) -> None:
        self._step, self._emulated, self._device, self._rate = step, emulated, device, rate
        self._chosen: Callable[[Any, int], None] | None = None
        self.wait_clock = ChosenClock(step.wait_clock, emulated.wait_clock)
        self.note = self.computes_in = ""

    def consume(self, batch: Any, samples: int) -> None:
        """Consume one batch."""
        if self._chosen is None:
            self._choose(batch)
        assert self._chosen is not None
        self._chosen(batch, samples)

    def _choose(self, batch: Any) -> None:
        why = why_no_classifier(batch)
        self._chosen = self._copy if why else self._step.consume
        self.computes_in = "" if why else _type_of(self._step)
        self.wait_clock.choose(self._emulated.wait_clock if why else self._step.wait_clock)
        taken = "at once" if math.isinf(self._rate) else f"at {self._rate:,.0f} samples/s"
        if why:
            self.note = (
                f"No training step ran: {why}. Batches were copied to the GPU and consumed {taken}. "
                "To measure your own step, set consumer.kind: target"
            )

    def _copy(self, batch: Any, samples: int) -> None:
        device = device_here(self._device)
        changed(batch, lambda tensor: tensor.to(device, non_blocking=True))
        self._emulated.consume(batch, samples)
