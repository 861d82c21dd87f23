"""On a GPU machine with a dataset of any kind: train where the batches allow it, else copy them and emulate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from loaderbench.consumers.accelerator import device_here
from loaderbench.consumers.batch_parts import changed, why_no_classifier
from loaderbench.consumers.kind import Consumer, WaitClock, WithPrecision


class ChosenClock:
    """Waits by two clocks until one of them is chosen, and by that one from then on."""

    def __init__(self, *clocks: WaitClock) -> None:
        self._clocks = clocks

    def choose(self, clock: WaitClock) -> None:
        """Keep this one alone."""
        self._clocks = (clock,)

    def ask(self) -> None:
        """Note the moment before `next()`."""
        for clock in self._clocks:
            clock.ask()

    def got(self) -> None:
        """Note the moment after `next()`."""
        for clock in self._clocks:
            clock.got()

    def waits_s(self) -> list[float]:
        """Return the wait of every batch so far, in seconds; may block until the device has reported them."""
        return self._clocks[0].waits_s()


def _type_of(step: Consumer) -> str:
    return step.computes_in if isinstance(step, WithPrecision) else ""


class ByFirstBatch:
    """A training step if the first batch fits it; else copies each batch to the device and emulates a GPU.

    `note` says why not, once the first batch is known; `computes_in` is the step's type where it trains.
    """

    def __init__(self, step: Consumer, emulated: Consumer, device: str, rate: float) -> None:
        self._step, self._emulated, self._device, self._rate = step, emulated, device, rate
        self._chosen: Callable[[Any, int], None] | None = None
        self.wait_clock = ChosenClock(step.wait_clock, emulated.wait_clock)
        self.note = self.computes_in = ""

    def consume(self, batch: Any, samples: int) -> None:
        """Take one batch."""
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
