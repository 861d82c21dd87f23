"""Traces one `DataLoader` without changing it: batches come from a view that carries the timing to the workers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from multiprocessing.sharedctypes import RawArray
from typing import Any

from loaderbench.tracing import active
from loaderbench.tracing import block as layout
from loaderbench.tracing.block import BLOCK_BYTES, Block
from loaderbench.tracing.hooks import Hooks
from loaderbench.tracing.reading import Mark, Traced, mark, read
from loaderbench.tracing.standins import SampleProxy, sample_methods, stand_ins
from loaderbench.tracing.tracer import Tracer
from loaderbench.tracing.views import NoViewError, StandIns, view_of
from loaderbench.tracing.worker import TracedCollate, TracedInit


class LoaderTrace:
    """One loader, traced over all the epochs that are begun with `batches`.

    `marks_only`: nothing is timed but the stages that the user's own code marks. Raises `NoViewError` for a loader that
    cannot be viewed.
    """

    def __init__(self, loader: Any, *, marks_only: bool = False) -> None:
        self.workers = int(loader.num_workers)
        self._memory = RawArray("B", BLOCK_BYTES * max(1, self.workers))
        self.blocks = [Block(self._memory, worker) for worker in range(max(1, self.workers))]
        self._hooks: Hooks | None = None
        self._tracer: Tracer | None = None
        self._iterator: Any = None  # of persistent workers: ours, beside the loader's own
        self._view = view_of(loader, self._stand_ins(loader, marks_only), {"_iterator": self._own_iterator()})
        for block in self.blocks:
            block.header[layout.ENABLED] = 1.0

    def batches(self) -> Iterator[Any]:
        """Begin an epoch."""
        if self._tracer is None:
            return iter(self._view)
        self._tracer.bind()
        return _InProcess(iter(self._view), self._tracer, self._hooks)

    def mark(self) -> Mark:
        """A moment from which `read` can count."""
        return mark(self.blocks)

    def read(self, since: Mark | None = None) -> Traced:
        """What was traced since a mark, or from the beginning."""
        if self._tracer is not None:
            self._tracer.flush()
        return read(self.blocks, since)

    def stop(self) -> None:
        """Trace no more, and let go of workers that persist for this trace alone."""
        for block in self.blocks:
            block.header[layout.ENABLED] = 0.0
        self._iterator = None

    def _stand_ins(self, loader: Any, marks_only: bool) -> StandIns:
        collate = loader.collate_fn
        found: dict[str, tuple[Any, Any]] = {"collate_fn": (collate, TracedCollate(collate))}
        if self.workers:
            init = loader.worker_init_fn
            return {**found, "worker_init_fn": (init, TracedInit(self._memory, init, marks_only))}
        self._tracer = Tracer(self.blocks[0])
        self._hooks = None if marks_only else Hooks(self._tracer)
        return {**found, "dataset": (loader.dataset, _dataset_view(loader.dataset, self._tracer, marks_only))}

    def _own_iterator(self) -> Any:
        def write(_: Any, iterator: Any) -> None:
            self._iterator = iterator

        return property(lambda _: self._iterator, write)


class _InProcess:
    """Batches made in this process: functions of libraries are replaced while one is made, and put back then."""

    def __init__(self, batches: Iterator[Any], tracer: Tracer, hooks: Hooks | None) -> None:
        self._batches, self._tracer, self._hooks = batches, tracer, hooks

    def __iter__(self) -> _InProcess:
        return self

    def __next__(self) -> Any:
        outer, active.tracer = active.tracer, self._tracer
        if self._hooks:
            self._hooks.install()
        try:
            return next(self._batches)
        finally:
            if self._hooks:
                self._hooks.remove()
            active.tracer = outer


def is_loader(source: Any) -> bool:
    """Whether it is torch's `DataLoader`; where torch is not loaded, nothing is."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(source, data.DataLoader)


def _dataset_view(dataset: Any, tracer: Tracer, marks_only: bool) -> Any:
    replaced = {} if marks_only or not hasattr(dataset, "__dict__") else stand_ins(dataset, tracer)
    try:
        return view_of(dataset, replaced, sample_methods(type(dataset), tracer))
    except NoViewError:
        return SampleProxy(dataset, tracer)
