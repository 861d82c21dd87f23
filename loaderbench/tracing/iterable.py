"""Traces batches that are made in this process by anything but a `DataLoader`: a generator, a loader of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from loaderbench.tracing import block as layout
from loaderbench.tracing.attach import InProcess
from loaderbench.tracing.block import BLOCK_BYTES, Block
from loaderbench.tracing.reading import Mark, Traced, mark, read
from loaderbench.tracing.taking import Taken, TakingClock
from loaderbench.tracing.tracer import Tracer


class IterableTrace:
    """Times what the caller's own thread does inside `next()`: marked stages, and functions that read and decode.

    `count` says how many samples a batch holds. How long each took is not told, for a batch is made in one piece.
    """

    def __init__(self, source: Iterable[Any], count: Callable[[Any], int], *, marks_only: bool = False) -> None:
        self._source, self._count = source, count
        self._block = Block(bytearray(BLOCK_BYTES))
        self._tracer = Tracer(self._block)
        self._hooked = not marks_only
        self.taking = TakingClock()
        self._block.header[layout.ENABLED] = 1.0

    def follow(self, source: Iterable[Any]) -> None:
        """Go on with another source, and add to what was counted."""
        self._source = source

    def batches(self) -> Iterator[Any]:
        """Begin an epoch."""
        self._tracer.bind()
        made = InProcess(self._made(iter(self._source)), self._tracer, None, hooked=self._hooked)
        return Taken(made, self.taking) if self._hooked else made

    def mark(self) -> Mark:
        """A moment from which `read` can count."""
        return mark([self._block], self.taking.read())

    def read(self, since: Mark | None = None) -> Traced:
        """What was traced since a mark, or from the beginning."""
        self._tracer.flush()
        return read([self._block], since, self.taking.read())

    def stop(self) -> None:
        """Trace no more."""
        self._block.header[layout.ENABLED] = 0.0

    def _made(self, batches: Iterator[Any]) -> Iterator[Any]:
        while True:
            try:
                yield self._tracer.batch(batches.__next__, self._count)
            except StopIteration:
                return
