"""Consumers that need no accelerator."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from loaderbench.consumers.base import Clock, HostWaitClock

IN_FLIGHT = 2  # a training loop that asks for no result runs about one step ahead of its device


class NoConsumer:
    """Drops every batch: the loader alone."""

    def __init__(self) -> None:
        self.wait_clock = HostWaitClock()

    def consume(self, batch: Any, samples: int) -> None:
        """Drop the batch."""


class EmulatedAccelerator:
    """A device that takes `samples / demand` seconds a batch, beside the host and without its CPU.

    Its queue is kept as the moments at which its batches will be done; the host sleeps only while the queue is full,
    as a training loop does. A late wake-up delays no batch, because the device's time is computed and not slept.
    `clock` is the device's, in seconds: it stands still while the trial does.
    """

    def __init__(self, demand: float, clock: Clock = time.monotonic) -> None:
        self._demand, self._clock = demand, clock
        self._done_at_s: deque[float] = deque([0.0], maxlen=IN_FLIGHT)
        self.wait_clock = HostWaitClock(lambda: self._done_at_s[-1], clock)

    def consume(self, batch: Any, samples: int) -> None:  # noqa: ARG002 - its content costs it nothing
        """Queue the batch; wait for room first."""
        room_at_s = self._done_at_s[0] if len(self._done_at_s) == IN_FLIGHT else 0.0
        start_s = max(self._clock(), self._done_at_s[-1])
        while (pause_s := room_at_s - self._clock()) > 0:
            time.sleep(pause_s)
        self._done_at_s.append(start_s + samples / self._demand)


class TargetConsumer:
    """The user's own step, called with each batch; it is taken to be done when it returns."""

    def __init__(self, step: Callable[[Any], Any]) -> None:
        self._step = step
        self.wait_clock = HostWaitClock()

    def consume(self, batch: Any, samples: int) -> None:  # noqa: ARG002 - a step sees its batch alone
        """Run the step."""
        self._step(batch)
