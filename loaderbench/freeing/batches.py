"""Make collating, or the transfer of batches to the main process, free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from loaderbench.freeing.replay import copy_of, unshared

Collate = Callable[[Any], Any]


@dataclass
class KeptBatches:
    """A `collate_fn` that makes a few batches of each size, and then returns these in rotation.

    It keeps `count` batches, more than the loader has in flight, since one is being sent while the next is made.
    Sending a kept batch costs as much as sending the original, if `changed` finds its tensors.
    """

    original: Collate
    count: int
    _kept: dict[Any, list[Any]] = field(default_factory=dict)
    _given: int = 0

    def __call__(self, samples: Any) -> Any:
        """Make a batch, or return a kept batch of the same size."""
        kept = self._kept.setdefault(_size(samples), [])
        if len(kept) < self.count:
            kept.append(self.original(samples))
            return unshared(kept[-1])
        self._given += 1
        return unshared(kept[self._given % len(kept)])


@dataclass
class SentOnce:
    """A `collate_fn` of a worker that makes every batch, but sends only the first of each size.

    Later batches are sent as a token, which the receiver replaces with that first batch.
    """

    original: Collate
    pinned: bool
    _sent: set[Any] = field(default_factory=set)

    def __call__(self, samples: Any) -> Any:
        """Make a batch, and return it or a token."""
        from torch.utils.data import get_worker_info

        batch, info = self.original(samples), get_worker_info()
        key = (info.id if info else 0, _size(samples))
        if key in self._sent:
            return _Token(key)
        self._sent.add(key)
        return _First(key, batch, self.pinned)


def _size(samples: Any) -> int:
    """The number of samples of a batch; one without automatic batching."""
    return len(samples) if isinstance(samples, list | tuple) else 1


@dataclass(frozen=True)
class _First:
    """A batch that the receiver keeps."""

    key: Any
    batch: Any
    pinned: bool

    def __reduce__(self) -> tuple[Any, ...]:
        return _keep, (self.key, self.batch, self.pinned)


@dataclass(frozen=True)
class _Token:
    """A token for a batch that the main process already has."""

    key: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived_before, (self.key,)


_arrived: dict[Any, Any] = {}


def _arrived_before(key: Any) -> Any:
    return _arrived[key]


def _keep(key: Any, batch: Any, pinned: bool) -> Any:
    """Keep a batch in this process's memory, pinned if the loader would pin it."""
    import torch

    own = copy_of(batch)
    if pinned and torch.cuda.is_available():  # without a GPU, torch ignores the argument, too
        from torch.utils.data._utils.pin_memory import pin_memory

        own = pin_memory(own)  # type: ignore[no-untyped-call]
    return _arrived.setdefault(key, own)
