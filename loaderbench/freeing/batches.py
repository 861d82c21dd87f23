"""Collating and the hand-over of batches made free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from loaderbench.freeing.values import copy_of, unshared

Collate = Callable[[Any], Any]


@dataclass
class KeptBatches:
    """A `collate_fn` that makes a few batches of each size, and then hands these out in turn.

    There are `count` of them, more than the loader has in flight: one is being sent while the next is made. Sending
    them costs the same as sending the original ones, if `changed` finds their tensors.
    """

    original: Collate
    count: int
    _kept: dict[Any, list[Any]] = field(default_factory=dict)
    _given: int = 0

    def __call__(self, samples: Any) -> Any:
        """Make a batch, or hand out one of this size."""
        kept = self._kept.setdefault(_size(samples), [])
        if len(kept) < self.count:
            kept.append(self.original(samples))
            return unshared(kept[-1])
        self._given += 1
        return unshared(kept[self._given % len(kept)])


@dataclass
class SentOnce:
    """A `collate_fn` of a worker that makes every batch, and sends only the first of each size.

    For all others it sends a token, which becomes that first batch where it arrives.
    """

    original: Collate
    pinned: bool
    _sent: set[Any] = field(default_factory=set)

    def __call__(self, samples: Any) -> Any:
        """Make a batch, and send it or a token."""
        from torch.utils.data import get_worker_info

        batch, info = self.original(samples), get_worker_info()
        key = (info.id if info else 0, _size(samples))
        if key in self._sent:
            return _Token(key)
        self._sent.add(key)
        return _First(key, batch, self.pinned)


def _size(samples: Any) -> int:
    """How many samples a batch has; without automatic batches one."""
    return len(samples) if isinstance(samples, list | tuple) else 1


@dataclass(frozen=True)
class _First:
    """A batch that is kept where it arrives."""

    key: Any
    batch: Any
    pinned: bool

    def __reduce__(self) -> tuple[Any, ...]:
        return _keep, (self.key, self.batch, self.pinned)


@dataclass(frozen=True)
class _Token:
    """Sent in place of a batch that the main process already has."""

    key: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return _come_before, (self.key,)


_arrived: dict[Any, Any] = {}


def _come_before(key: Any) -> Any:
    return _arrived[key]


def _keep(key: Any, batch: Any, pinned: bool) -> Any:
    """Keep a batch in memory of this process, where the loader would pin it anyway in pinned memory."""
    import torch

    own = copy_of(batch)
    if pinned and torch.cuda.is_available():  # without a GPU, torch ignores the argument, too
        from torch.utils.data._utils.pin_memory import pin_memory

        own = pin_memory(own)  # type: ignore[no-untyped-call]
    return _arrived.setdefault(key, own)
