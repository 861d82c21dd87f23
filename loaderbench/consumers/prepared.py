"""A consumer whose batches are first completed on its device, such as files that workers only read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from loaderbench.consumers.kind import Consumer, WaitClock, WithNote, WithPrecision

if TYPE_CHECKING:
    from loaderbench.consumers.cuda import RunAhead


class PreparedFirst:
    """Call `prepare` with each batch and pass the result to a consumer; both are part of the step.

    `prepare` can have a `note` about unusual events. On a CUDA device the host stays at most two batches ahead, even
    with a consumer that computes nothing.
    """

    def __init__(self, consumer: Consumer, prepare: Callable[[Any], Any], device: str) -> None:
        self._consumer, self._prepare = consumer, prepare
        self._run_ahead = _run_ahead(device)
        self.wait_clock: WaitClock = consumer.wait_clock

    @property
    def note(self) -> str:
        """The notes of the consumer and of `prepare`."""
        parts: tuple[object, ...] = (self._consumer, self._prepare)
        return ". ".join(part.note for part in parts if isinstance(part, WithNote) and part.note)

    @property
    def computes_in(self) -> str:
        """The data type of the consumer's step; empty if it does not train."""
        return self._consumer.computes_in if isinstance(self._consumer, WithPrecision) else ""

    def consume(self, batch: Any, samples: int) -> None:
        """Prepare the batch, and consume it."""
        self._consumer.consume(self._prepare(batch), samples)
        if self._run_ahead is not None:
            self._run_ahead.queued()


def _run_ahead(device: str) -> RunAhead | None:
    import torch

    found = torch.device(device)
    if found.type != "cuda":
        return None
    from loaderbench.consumers.cuda import RunAhead

    return RunAhead(found.index)
