"""No consumer: the loader runs alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from loaderbench.consumers.kind import Clock, Consumer, ConsumerKind, HostWaitClock

NO_CONSUMER = "nothing consumes the batches"


class NoConsumer:
    """Drop every batch."""

    def __init__(self) -> None:
        self.wait_clock = HostWaitClock()

    def consume(self, batch: Any, samples: int) -> None:
        """Drop the batch."""


class Nothing(ConsumerKind):
    """No consumer, so the rate is that of the loader."""

    consumes: ClassVar[bool] = False
    why_not_replayed: ClassVar[str] = NO_CONSUMER

    def make(self, config: Mapping[str, Any], folder: Path, clock: Clock) -> Consumer:
        """Create a consumer that drops every batch."""
        return NoConsumer()
