"""The consumer that a suite names."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from loaderbench.consumers.base import Clock, Consumer
from loaderbench.consumers.host import EmulatedAccelerator, NoConsumer, TargetConsumer


def make_consumer(
    kind: str,
    *,
    demand: float,
    model: str,
    step: Callable[[Any], Any] | None = None,
    clock: Clock = time.monotonic,
) -> Consumer:
    """Build it. `kind` is a resolved one: `none`, `emulated`, `model` or `target`; `demand` in samples/s."""
    if kind == "model":
        from loaderbench.consumers.cuda import TrainingStep

        return TrainingStep(model)
    if kind == "target" and step is not None:
        return TargetConsumer(step)
    return EmulatedAccelerator(demand, clock) if kind == "emulated" else NoConsumer()
