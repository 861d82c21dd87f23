"""What a recorder asks of a consumer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

Clock = Callable[[], float]
"""Says the time in seconds; only differences mean something."""


class WaitClock(Protocol):
    """Times the data wait: what of `next()` was spent while nothing was left to compute."""

    def ask(self) -> None:
        """Note the moment before `next()`."""

    def got(self) -> None:
        """Note the moment after `next()`."""

    def waits_s(self) -> list[float]:
        """Return the wait of every batch so far, in seconds; may block until the device has told them."""
        ...


class Consumer(Protocol):
    """Eats batches one after another."""

    @property
    def wait_clock(self) -> WaitClock:
        """The clock that knows when this consumer runs out of work."""
        ...

    def consume(self, batch: Any, samples: int) -> None:
        """Take one batch; returns as soon as a training loop could ask for the next."""


class HostWaitClock:
    """Waits by the host's clock, from the later of the call and the moment the consumer ran out of work."""

    def __init__(self, drained_at_s: Clock = lambda: 0.0, clock: Clock = time.monotonic) -> None:
        self._drained_at_s, self._clock = drained_at_s, clock
        self._asked_s = 0.0
        self._waits_s: list[float] = []

    def ask(self) -> None:
        """Note the moment before `next()`."""
        self._asked_s = self._clock()

    def got(self) -> None:
        """Note the wait that ends now."""
        self._waits_s.append(max(0.0, self._clock() - max(self._asked_s, self._drained_at_s())))

    def waits_s(self) -> list[float]:
        """Return the wait of every batch so far, in seconds."""
        return self._waits_s
