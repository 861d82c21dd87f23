"""fastai's `DataLoader`, which is not torch's: it begins an epoch by making one of torch's two iterators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any, Protocol
from weakref import WeakValueDictionary

from loaderbench.tracing.other_loader import OtherLoader

Iterate = Callable[[Any], Iterator[Any]]
"""Makes torch's iterator over the object that fastai passes to it."""


class Recorded(Protocol):
    """Torch's loaders, which are recorded too: one recorder for all, and what is to be undone with it."""

    undo: list[Callable[[], None]]

    def recorder(self) -> Any:
        """`None` where nothing is recorded."""


_known: WeakValueDictionary[int, FastaiLoader] = WeakValueDictionary()  # by the id of what is passed to torch


def record_iterators(module: ModuleType, recorded: Recorded) -> None:
    """Record the epochs of each loader of fastai, where it makes an iterator; undone where `recorded` is."""
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
    """A loader of fastai. The transforms of a batch (`after_batch`) come after its iterator and belong to the step."""

    collate_fn = None  # a batch arrives whole: `do_batch` makes it
    sampler = None
    in_order = True
    iterate: Iterate

    def __init__(self, passed: Any) -> None:
        self.passed, self.of_user = passed, passed.d
        self.worker_init_fn = passed.worker_init_fn

    def __getattr__(self, name: str) -> Any:
        if name in ("passed", "of_user"):  # asked for by copy before there is one
            raise AttributeError(name)
        return getattr(self.passed, name)

    def __len__(self) -> int:
        return len(self.of_user)

    @property
    def dataset(self) -> Any:
        """The user's, and not what torch takes for one."""
        return self.of_user.dataset

    @property
    def batch_size(self) -> int | None:
        """Samples of a batch; `None` where the dataset gives batches."""
        size: int | None = self.of_user.bs
        return size

    def begin_epoch(self) -> Iterator[Any]:
        """Begin it as fastai does; its workers begin with `worker_init_fn`."""
        with self._passing_on():
            return self.iterate(self.passed)

    @contextmanager
    def _passing_on(self) -> Iterator[None]:
        before, self.passed.worker_init_fn = self.passed.worker_init_fn, self.worker_init_fn
        try:
            yield
        finally:
            self.passed.worker_init_fn = before
