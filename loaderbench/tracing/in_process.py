"""Batches that are made in the user's own process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loaderbench.tracing import active, block as layout, hooks
from loaderbench.tracing.attach import Attachment
from loaderbench.tracing.tracer import Tracer


class InProcess:
    """The dataset's parts are timed, and functions of libraries replaced, while a batch is made, and not longer."""

    def __init__(
        self, batches: Iterator[Any], tracer: Tracer, attachment: Attachment | None, *, hooked: bool
    ) -> None:  # fmt: skip
        self._batches, self._tracer, self._attachment, self._hooked = batches, tracer, attachment, hooked

    def __iter__(self) -> InProcess:
        return self

    def __next__(self) -> Any:
        if not self._tracer.block.header[layout.ENABLED]:
            return next(self._batches)
        outer = active.set_tracer(self._tracer)
        try:
            self._begin()
            return next(self._batches)
        finally:
            self._end()
            active.set_tracer(outer)

    def _begin(self) -> None:
        if self._attachment:
            self._attachment.attach()
        if self._hooked:
            hooks.install()

    def _end(self) -> None:
        if self._hooked:
            hooks.remove()
        if self._attachment:
            self._attachment.detach()
