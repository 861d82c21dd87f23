"""Copies of batches to the GPU: on the stream of the step, or on a separate stream during the step before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch


class Copies(Protocol):
    """Takes the parts of a batch on the host, and gives those of the batch to be trained on."""

    def to_device(self, parts: Sequence[Any]) -> Sequence[Any] | None:
        """Queue the copy; `None` where no batch is ready yet."""
        ...


class InLine:
    """Copies on the stream that computes: none of it overlaps with the step."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def to_device(self, parts: Sequence[Any]) -> Sequence[Any] | None:
        """Queue the copy, and give the same batch."""
        return [part.to(self._device, non_blocking=True) for part in parts]


class OnSideStream:
    """Copies a batch on a separate stream, and returns the batch before, whose step computes meanwhile.

    Only copies from pinned memory return at once. Source: the prefetcher of NVIDIA's Deep Learning Examples.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._ready: tuple[list[Any], Any] | None = None

    def to_device(self, parts: Sequence[Any]) -> Sequence[Any] | None:
        """Queue the copy, and give the batch that was queued before; `None` at first."""
        with torch.cuda.stream(self._stream):
            copied = [part.to(self._device, non_blocking=True) for part in parts]
            done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            done.record(self._stream)
        before, self._ready = self._ready, (copied, done)
        return None if before is None else self._taken(*before)

    def _taken(self, copied: list[Any], done: Any) -> list[Any]:
        """Let the computing stream wait for the copy, and keep its memory until that stream is done with it."""
        computes = torch.cuda.current_stream(self._device)
        computes.wait_event(done)
        for part in copied:
            part.record_stream(computes)
        return copied
