"""A `DataLoader` as the configuration asks for it, over a sampler that never ends."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler

from loaderbench.loaders.backend import Batches
from loaderbench.loaders.torch_loader import NEEDS_WORKERS, PREFETCH
from loaderbench.loaders.worker_options import WORKER_OPTIONS, worker_setup

SETTABLE = ("num_workers", "prefetch_factor", "pin_memory", "timeout", "in_order", "multiprocessing_context")
"""What may still be set on a `DataLoader` that is made already; torch refuses the rest."""

_ARGUMENTS = inspect.signature(DataLoader.__init__).parameters


class EndlessSampler(Sampler[int]):
    """One permutation after the other, so that neither an epoch's end nor the emptying of the queue is measured."""

    def __init__(self, length: int, shuffle: bool, seed: int) -> None:
        self._length, self._shuffle, self._seed = length, shuffle, seed

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self._seed)
        while True:
            yield from (
                torch.randperm(self._length, generator=generator).tolist() if self._shuffle else range(self._length)
            )


class TorchBatches(Batches):
    """Those of a `DataLoader`."""

    @property
    def traceable(self) -> bool:
        """It is one."""
        return True

    @property
    def can_be_stopped(self) -> bool:
        """With a time limit for its batches a loader would take that for a hang."""
        return not getattr(self.iterable, "timeout", 0)

    def close(self, iterator: Iterator[Any] | None = None) -> None:
        """End the workers by their own way, those that persist too: their loader holds on to them."""
        if iterator is None:
            return
        with suppress(AttributeError):  # of an iterator without workers
            iterator._shutdown_workers()  # type: ignore[attr-defined]
        if getattr(self.iterable, "_iterator", None) is iterator:
            self.iterable._iterator = None  # type: ignore[attr-defined]


def build_loader(source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
    """Wrap what a target or a dataset gave.

    A `Dataset` gets a `DataLoader` with `arguments` (those that torch refuses without workers are left out); on a
    `DataLoader` those are set that may be; any other iterable stays as it is. Raises `TypeError` for anything else, and
    what torch raises.
    """
    if isinstance(source, DataLoader):
        return _of(source, _set_on(source, arguments))
    if isinstance(source, IterableDataset):
        return _made(DataLoader(source, **_usable(arguments)), arguments)
    if isinstance(source, Dataset) or _is_map_style(source):
        length = len(source)
        if length == 0:
            raise ValueError("the dataset is empty")
        sampler = EndlessSampler(length, bool(arguments.get("shuffle", False)), seed)
        return _made(DataLoader(source, sampler=sampler, **_usable(arguments)), arguments)
    if isinstance(source, Iterable):
        return Batches(source)
    raise TypeError(f"{type(source).__name__} is neither a Dataset nor an iterable of batches")


def _is_map_style(source: Any) -> bool:
    """Datasets of other libraries are no `Dataset` of torch's; a plain list is taken as batches that are ready."""
    return hasattr(source, "__getitem__") and hasattr(source, "__len__") and not isinstance(source, list | tuple | dict)


def _made(loader: DataLoader[Any], arguments: Mapping[str, Any]) -> Batches:
    _set_up(loader, arguments)
    return _of(loader, arguments)


def _of(loader: DataLoader[Any], configured: Iterable[str]) -> Batches:
    prefetched = loader.num_workers * (loader.prefetch_factor or 0)
    told = hasattr(loader.dataset, "__len__") and not isinstance(loader.dataset, IterableDataset)
    length = len(loader.dataset) if told else None  # type: ignore[arg-type]
    cycle = max(1, loader.num_workers)
    return TorchBatches(loader, prefetched, cycle, frozenset(configured), loader.batch_size, length)


def _set_on(loader: DataLoader[Any], arguments: Mapping[str, Any]) -> list[str]:
    """Change a loader that somebody else made, before it is iterated over; return what could be changed."""
    changed = {name: value for name, value in arguments.items() if name in SETTABLE}
    loader.num_workers = changed.get("num_workers", loader.num_workers)  # the others depend on it
    if not loader.num_workers:
        loader.prefetch_factor, loader.timeout = None, 0
        asks = {name for name, value in NEEDS_WORKERS.items() if arguments.get(name, value) != value}
        changed = {name: value for name, value in arguments.items() if name in {*SETTABLE, *NEEDS_WORKERS} - asks}
    for name in changed.keys() & SETTABLE:
        setattr(loader, name, changed[name])
    if loader.num_workers and loader.prefetch_factor is None:
        loader.prefetch_factor = PREFETCH  # which torch sets where workers were asked for at once
    _set_up(loader, arguments)
    return [*changed, *(name for name in WORKER_OPTIONS if name in arguments)]


def _set_up(loader: DataLoader[Any], arguments: Mapping[str, Any]) -> None:
    """Let the workers set themselves up; without workers this process does."""
    setup = worker_setup(arguments, loader.worker_init_fn)
    if setup is not None and loader.num_workers:
        loader.worker_init_fn = setup
    elif setup is not None:
        replace(setup, before=None)(0)


def _usable(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what torch refuses without workers, and `shuffle`, which the sampler does."""
    dropped = ("shuffle", *WORKER_OPTIONS, *(() if arguments.get("num_workers") else NEEDS_WORKERS))
    kept = {name: value for name, value in arguments.items() if name not in dropped}
    if unknown := sorted(kept.keys() - _ARGUMENTS.keys()):
        raise TypeError(
            f"neither the target nor this torch's DataLoader ({torch.__version__}) takes {', '.join(unknown)}"
        )
    return kept
