"""Records fastai's `DataLoader`, which is not torch's but begins an epoch with one of torch's two iterators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any, Protocol
from weakref import WeakValueDictionary

from loaderbench.tracing.other_loader import OtherLoader

Iterate = Callable[[Any], Iterator[Any]]
"""Creates torch's iterator over the object that fastai passes to it."""


class Recorded(Protocol):
    """What fastai's recording shares with that of torch's loaders: one recorder, and the changes to undo at the end."""

    undo: list[Callable[[], None]]

    def recorder(self) -> Any:
        """The recorder; `None` if nothing is recorded."""


_known: WeakValueDictionary[int, FastaiLoader] = WeakValueDictionary()  # by the id of the object passed to torch


def record_iterators(module: ModuleType, recorded: Recorded) -> None:
    """Record every epoch of fastai's loaders, by replacing the iterators it uses, until `recorded` is undone."""
    usual: tuple[Iterate, ...] = module._loaders
    ours = tuple(partial(_epoch, recorded, iterate) for iterate in usual)

    def undo() -> None:
        if module._loaders is ours:
            module._loaders = usual  # type: ignore[attr-defined]

    module._loaders = ours  # type: ignore[attr-defined]
    recorded.undo.append(undo)


def _epoch(recorded: Recorded, iterate: Iterate, passed: Any) -> Iterator[Any]:
    recorder = recorded.recorder()
    if recorder is None:
        return iterate(passed)
    loader = _known.get(id(passed))
    if loader is None or loader.passed is not passed:
        loader = _known[id(passed)] = FastaiLoader(passed)
    loader.iterate = iterate
    begun: Iterator[Any] = recorder.epoch(loader)
    return begun


class FastaiLoader(OtherLoader):
    """A fastai loader. The batch transforms (`after_batch`) run after its iterator and belong to the step."""

    collate_fn = None  # batches arrive complete, from `do_batch`
    sampler = None
    in_order = True
    iterate: Iterate

    def __init__(self, passed: Any) -> None:
        self.passed, self.of_user = passed, passed.d
        self.worker_init_fn = passed.worker_init_fn

    def __getattr__(self, name: str) -> Any:
        if name in ("passed", "of_user"):  # copy looks this up before it is set
            raise AttributeError(name)
        return getattr(self.passed, name)

    def __len__(self) -> int:
        return len(self.of_user)

    @property
    def dataset(self) -> Any:
        """The user's dataset, not the dummy that fastai passes to torch."""
        return self.of_user.dataset

    @property
    def batch_size(self) -> int | None:
        """Samples per batch; `None` if the dataset returns batches."""
        size: int | None = self.of_user.bs
        return size

    def begin_epoch(self) -> Iterator[Any]:
        """Begin an epoch like fastai, with our `worker_init_fn` in its workers."""
        with self._passing_on():
            return self.iterate(self.passed)

    @contextmanager
    def _passing_on(self) -> Iterator[None]:
        before, self.passed.worker_init_fn = self.passed.worker_init_fn, self.worker_init_fn
        try:
            yield
        finally:
            self.passed.worker_init_fn = before
