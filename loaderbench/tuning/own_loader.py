"""The loader of a script as what trials measure, with locks of its own: only this process and its copies have it."""

from __future__ import annotations

import copy
import multiprocessing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.sharedctypes import SynchronizedBase
from multiprocessing.synchronize import Condition, SemLock
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from loaderbench.datasets import Built, DatasetOrder
from loaderbench.datasets.target import Target
from loaderbench.tracing.loader import start_method_of
from loaderbench.tuning.obstacles import held_by

if TYPE_CHECKING:
    from torch.utils.data import DataLoader


@dataclass(frozen=True)
class _Own:
    """`start_method` is the one that the script has set for its own processes; `None` is Python's default.

    `whole_epochs`: trials take whole epochs, with the start and the end of their workers; else one without an end.
    """

    loader: DataLoader[Any]
    start_method: str | None
    whole_epochs: bool


_own: list[_Own] = []


def keep(loader: DataLoader[Any], *, whole_epochs: bool) -> None:
    """Let trials that are forked from this process measure it."""
    _own[:] = [_Own(loader, multiprocessing.get_start_method(allow_none=True), whole_epochs)]


def forget() -> None:
    """Keep none alive."""
    _own.clear()


def changed_loader(batch_size: int | None = None, *, persistent_workers: bool | None = None) -> DataLoader[Any]:
    """A copy of the script's loader with its dataset and its sampler, and workers of its own.

    `batch_size` is the loader's, for the record: another would change the training. Pinned memory needs a GPU, which a
    forked process cannot use. torch computes in one thread, as in workers: the system still counts the threads that no
    copy has, and lets those of a copy sleep where they would spin. Raises `ValueError` for another batch size.
    """
    import torch
    from torch.utils.data import IterableDataset

    own = _own[0]
    _forget_fork_server()
    multiprocessing.set_start_method(own.start_method, force=True)
    torch.set_num_threads(1)
    if batch_size not in (None, own.loader.batch_size):
        raise ValueError(f"batch_size={batch_size} would change the training; it stays {own.loader.batch_size}")
    loader = copy.copy(own.loader)
    parts = [loader.dataset, loader.sampler, loader.batch_sampler, loader.collate_fn]
    renew_locks(parts, start_method_of(loader))
    vars(loader).update(_iterator=None, pin_memory=False)
    if not own.whole_epochs and not isinstance(loader.dataset, IterableDataset):
        for name in ("sampler", "batch_sampler"):
            if getattr(loader, name) is not None:
                vars(loader)[name] = WithoutEnd(getattr(loader, name))
    if persistent_workers is not None:
        vars(loader)["persistent_workers"] = persistent_workers  # which torch allows nobody to set later
    return loader


def _forget_fork_server() -> None:
    """Let this copy start a server of its own: that of the script is no child of it, and cannot be waited for."""
    from multiprocessing import forkserver

    server = getattr(forkserver, "_forkserver", None)
    for name in ("_forkserver_address", "_forkserver_alive_fd", "_forkserver_pid", "_forkserver_authkey"):
        if hasattr(server, name):
            setattr(server, name, None)


class WithoutEnd:
    """One pass over a sampler after the other, as a single epoch that never ends."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler

    def __iter__(self) -> Iterator[Any]:
        while True:
            before = None
            for before in self._sampler:
                yield before
            if before is None:  # an empty one would never yield
                return

    def __len__(self) -> int:
        return len(self._sampler)

    def __getattr__(self, name: str) -> Any:
        if name == "_sampler":  # asked for by copy before there is one
            raise AttributeError(name)
        return getattr(self._sampler, name)


class OwnLoader(Target):
    """The kind `target`, for a loader that was kept here. Its time is for settings and fixes: no stage is made free."""

    frees_stages: ClassVar[bool] = False

    def describe(self, sweep: Mapping[str, Any], folder: Path) -> str:  # noqa: ARG002 - part of the protocol
        """Name its dataset, with its samples if they are known."""
        dataset: Any = _own[0].loader.dataset
        name = type(dataset).__name__
        try:
            return f"{name}, {len(dataset):,} samples"
        except Exception:  # without a length, or with one of the user's that raises
            return name

    def targets(self, sweep: Mapping[str, Any]) -> list[str]:  # noqa: ARG002
        """None that would have to be imported."""
        return []

    def build(self, order: DatasetOrder) -> Built:
        """Copy the loader with those arguments that can only be set here."""
        taken = {name: value for name, value in order.arguments.items() if name in ("batch_size", "persistent_workers")}
        loader = changed_loader(**taken)
        cycle = len(loader) if _own[0].whole_epochs else None
        return Built(loader, dict(order.arguments), frozenset(taken), cycle)


def renew_locks(parts: Sequence[Any], start_method: str) -> None:
    """In a forked copy: make every lock of `multiprocessing` in these objects anew, for the copy and its workers.

    `start_method` is that of the workers. A lock that somebody holds now is free in the copy. Values in shared memory
    stay shared.
    """
    held = list(held_by(parts))
    context: Any = multiprocessing.get_context(start_method)
    for lock in _of(SemLock, held):
        own = lock._semlock
        value = 1 if own.maxvalue == 1 else own._get_value()
        SemLock.__init__(lock, own.kind, value, own.maxvalue, ctx=context)
    for condition in _of(Condition, held):  # which keeps the lock's methods as its own, as values do
        condition._make_methods()
    for shared in _of(SynchronizedBase, held):
        lock = shared.get_lock()
        vars(shared).update(acquire=lock.acquire, release=lock.release)


def _of(kind: type, held: Iterable[Any]) -> list[Any]:
    """By their types alone: no code of the user's is asked."""
    return [one for one in held if issubclass(type(one), kind)]
