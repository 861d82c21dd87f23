"""Makes a script's loader available to trials, with new locks: it exists only in this process and in forked copies."""

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
from loaderbench.tuning.forked import held_by

if TYPE_CHECKING:
    from torch.utils.data import DataLoader


@dataclass(frozen=True)
class _Own:
    """The loader to measure. `start_method` is the script's own choice; `None` is Python's default.

    `whole_epochs`: trials run complete epochs, including the start and end of workers; otherwise, one endless epoch.
    """

    loader: DataLoader[Any]
    start_method: str | None
    whole_epochs: bool


_own: list[_Own] = []


def keep(loader: DataLoader[Any], *, whole_epochs: bool) -> None:
    """Make the loader available to trials that are forked from this process."""
    _own[:] = [_Own(loader, multiprocessing.get_start_method(allow_none=True), whole_epochs)]


def forget() -> None:
    """Drop the reference to the loader."""
    _own.clear()


def changed_loader(batch_size: int | None = None, *, persistent_workers: bool | None = None) -> DataLoader[Any]:
    """A copy of the script's loader with the same dataset and sampler, and with new workers.

    `batch_size` must be the loader's own; another would change the training and raises `ValueError`. Pinning is off,
    because it needs a GPU, which a forked process cannot use. torch computes in one thread, as in workers: the OpenMP
    runtime still counts threads that the copy does not have, and makes the copy's threads sleep instead of spin.
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
    parts = [loader.dataset, loader.sampler, loader.batch_sampler, loader.collate_fn, loader.worker_init_fn]
    renew_locks(parts, start_method_of(loader))
    vars(loader).update(_iterator=None, pin_memory=False)
    if not own.whole_epochs and not isinstance(loader.dataset, IterableDataset):
        for name in ("sampler", "batch_sampler"):
            if getattr(loader, name) is not None:
                vars(loader)[name] = WithoutEnd(getattr(loader, name))
    if persistent_workers is not None:
        vars(loader)["persistent_workers"] = persistent_workers  # torch does not allow setting this later
    return loader


def _forget_fork_server() -> None:
    """Let this copy start a new fork server: it cannot wait for the script's server, which is not its child."""
    from multiprocessing import forkserver

    server = getattr(forkserver, "_forkserver", None)
    for name in ("_forkserver_address", "_forkserver_alive_fd", "_forkserver_pid", "_forkserver_authkey"):
        if hasattr(server, name):
            setattr(server, name, None)


class WithoutEnd:
    """Repeats a sampler as a single epoch that never ends."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler

    def __iter__(self) -> Iterator[Any]:
        while True:
            before = None
            for before in self._sampler:
                yield before
            if before is None:  # an empty sampler would loop forever
                return

    def __len__(self) -> int:
        return len(self._sampler)

    def __getattr__(self, name: str) -> Any:
        if name == "_sampler":  # copy looks this up before it is set
            raise AttributeError(name)
        return getattr(self._sampler, name)


class OwnLoader(Target):
    """A dataset of kind `target` for the kept loader. The budget goes to settings and fixes: no stage is freed."""

    is_of_script: ClassVar[bool] = True

    def describe(self, sweep: Mapping[str, Any], folder: Path) -> str:  # noqa: ARG002 - part of the protocol
        """The class of the dataset, with the number of samples if known."""
        dataset: Any = _own[0].loader.dataset
        name = type(dataset).__name__
        try:
            return f"{name}, {len(dataset):,} samples"
        except Exception:  # no length, or the user's `__len__` raises
            return name

    def targets(self, sweep: Mapping[str, Any]) -> list[str]:  # noqa: ARG002
        """An empty list: there is nothing to import."""
        return []

    def build(self, order: DatasetOrder) -> Built:
        """Copy the loader with the arguments that can only be set here."""
        taken = {name: value for name, value in order.arguments.items() if name in ("batch_size", "persistent_workers")}
        loader = changed_loader(**taken)
        cycle = len(loader) if _own[0].whole_epochs else None
        return Built(loader, dict(order.arguments), frozenset(taken), cycle)


def renew_locks(parts: Sequence[Any], start_method: str) -> None:
    """In a forked copy, replace every `multiprocessing` lock in these objects, for the copy and its workers.

    `start_method` is that of the workers. A lock that is currently held is free in the copy. Values in shared memory
    stay shared.
    """
    held = list(held_by(parts))
    context: Any = multiprocessing.get_context(start_method)
    for lock in _of_type(SemLock, held):
        own = lock._semlock
        value = 1 if own.maxvalue == 1 else own._get_value()
        SemLock.__init__(lock, own.kind, value, own.maxvalue, ctx=context)
    for condition in _of_type(Condition, held):  # it keeps the lock's methods as attributes, as values do
        condition._make_methods()
    for shared in _of_type(SynchronizedBase, held):
        lock = shared.get_lock()
        vars(shared).update(acquire=lock.acquire, release=lock.release)


def _of_type(kind: type, held: Iterable[Any]) -> list[Any]:
    """The objects of this type. Only types are checked; no user code is run."""
    return [one for one in held if issubclass(type(one), kind)]
