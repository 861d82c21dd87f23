"""What runs inside a worker: two callables that the loader carries there, with the user's own inside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loaderbench.tracing import active
from loaderbench.tracing.block import Block
from loaderbench.tracing.hooks import Hooks
from loaderbench.tracing.standins import sample_methods, stand_ins
from loaderbench.tracing.tracer import Tracer
from loaderbench.tracing.views import NoViewError, view_class


@dataclass(frozen=True)
class TracedInit:
    """A `worker_init_fn` that runs the user's first, and then traces the worker's own copy of the dataset.

    `memory` holds a block for each worker. `marks_only`: nothing is timed but what the user's code marks as a stage.
    """

    memory: Any
    original: Callable[[int], Any] | None
    marks_only: bool

    def __call__(self, worker_id: int) -> None:
        """Run in the worker, before its first sample."""
        if self.original is not None:
            self.original(worker_id)
        from torch.utils.data import get_worker_info

        info = get_worker_info()
        block = Block(self.memory, worker_id)
        try:
            active.tracer = tracer = Tracer(block)
            _trace(info.dataset if info else None, tracer, self.marks_only)
        except Exception as error:  # the user's loader goes on, untraced, and the parent is told why
            block.fail(f"{type(error).__name__}: {error}")


@dataclass(frozen=True)
class TracedCollate:
    """A `collate_fn` that times the user's, wherever it runs."""

    original: Callable[[Any], Any]

    def __call__(self, samples: Any) -> Any:
        """Make a batch of samples."""
        return self.original(samples) if active.tracer is None else active.tracer.collate(self.original, samples)

    def __getattr__(self, name: str) -> Any:
        if name == "original":  # asked for by pickle before there is one
            raise AttributeError(name)
        return getattr(self.original, name)


def _trace(dataset: Any, tracer: Tracer, marks_only: bool) -> None:
    if marks_only:
        _change_class(dataset, tracer, {})
        return
    import PIL.Image
    import PIL.ImageFile  # noqa: F401 - loaded now, so that their functions are found

    _change_class(dataset, tracer, stand_ins(dataset, tracer) if hasattr(dataset, "__dict__") else {})
    Hooks(tracer).install()


def _change_class(dataset: Any, tracer: Tracer, replaced: Any) -> None:
    """Make the worker's copy of the dataset a view of itself; where that cannot be, change its class."""
    base = type(dataset)
    methods = sample_methods(base, tracer)
    try:
        dataset.__class__ = view_class(base, replaced, methods)
    except (NoViewError, TypeError):
        for name, method in methods.items():
            setattr(base, name, method)
