"""Replay the results of calls, sample by sample, in the process that loads them.

Results are kept as copies. If a later stage changes them in place, each call gets a copy of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

_IMMUTABLE = (bytes, str, int, float, bool, type(None))


def copy_of(value: Any) -> Any:
    """A copy that shares no memory with the value; values that cannot be copied are returned unchanged."""
    if type(value) is dict:
        return {key: copy_of(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(copy_of(part) for part in value)
    if isinstance(value, _IMMUTABLE):
        return value
    return _copy_of_pixels(value)


def _copy_of_pixels(value: Any) -> Any:
    torch, image = sys.modules.get("torch"), sys.modules.get("PIL.Image")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().clone()
    if image is not None and isinstance(value, image.Image):
        copied = value.copy()
        copied.format = value.format
        return copied
    try:
        return deepcopy(value)
    except Exception:  # a lock, a generator, a handle of some library
        return value


def renewed(value: Any) -> Any:
    """The same pixels in new containers, because a later stage may change a list or a dict."""
    if type(value) is dict:
        return {key: renewed(part) for key, part in value.items()}
    return type(value)(map(renewed, value)) if type(value) in (list, tuple) else value


def unshared(value: Any) -> Any:
    """The tensors of a batch over the same memory, each with a new storage.

    Sending a tensor moves its storage into shared memory, which costs nothing the second time. A new storage costs the
    same each time. A tensor already in shared memory is returned unchanged.
    """
    import torch
    from torch.utils.dlpack import from_dlpack

    from loaderbench.consumers.batch_parts import changed

    def fresh(part: torch.Tensor) -> torch.Tensor:
        plain = type(part) is torch.Tensor and part.layout is torch.strided and not part.requires_grad
        return from_dlpack(part) if plain and not part.is_shared() else part  # type: ignore[no-untyped-call]

    return changed(value, fresh)


def is_same(one: Any, other: Any) -> bool:
    """Whether two values have the same pixels; values that cannot be compared count as the same.

    The copy of an image that Pillow opened from a file is of a plain class.
    """
    if type(one) is not type(other) and not (_is_image(one) and _is_image(other)):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    return _are_same_pixels(one, other)


def _is_image(value: Any) -> bool:
    image = sys.modules.get("PIL.Image")
    return image is not None and isinstance(value, image.Image)


def _are_same_pixels(one: Any, other: Any) -> bool:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(one, torch.Tensor):
        return bool(torch.equal(one, other))
    if numpy is not None and isinstance(one, numpy.ndarray):
        return bool(numpy.array_equal(one, other))
    return _are_same_images(one, other) if _is_image(one) else True


def _are_same_images(one: Any, other: Any) -> bool:
    try:
        return bool(one.mode == other.mode and one.size == other.size and one.tobytes() == other.tobytes())
    except ValueError:  # it was closed
        return False


Read = Callable[[Sequence[Any]], None]
"""Reads a file or decodes again, as a kept call did; called with the arguments of the replayed call."""


@dataclass
class Making:
    """The samples that this process is loading, by key; empty in between. `known` are the kept samples.

    `keeps`: the real calls are made, and their results are kept. `reads` collects what a call with these `arguments`
    reads or decodes.
    """

    keys: Sequence[Any] = ()
    keeps: bool = False
    number: int = 0
    known: dict[Any, None] = field(default_factory=dict)
    reads: list[Read] | None = None
    arguments: Sequence[Any] = ()
    thread: int = 0

    @contextmanager
    def of(self, keys: Sequence[Any], *, keeps: bool = False) -> Iterator[None]:
        """Mark these samples as being loaded, unless the call is already part of a sample."""
        if self.keys or not keys:
            yield
            return
        self.keys, self.keeps, self.number, self.thread = keys, keeps, self.number + 1, get_ident()
        try:
            yield
        finally:
            self.keys, self.keeps = (), False

    @property
    def is_under_way(self) -> bool:
        """Whether this thread is loading a sample."""
        return bool(self.keys) and get_ident() == self.thread

    def key(self, place: int) -> Any:
        """The kept sample for this position in a batch. Any other sample always maps to the same kept one."""
        found = self.keys[min(place, len(self.keys) - 1)]
        if found in self.known or not self.known:
            return found
        return list(self.known)[hash(found) % len(self.known)]


class Replay:
    """Replace one function: keep its results by sample and by call within the sample, and return them later.

    A result that a later stage changes in place is copied for each call, since the real function returns new memory.
    Other results are returned without a copy. `with_reads`: each replay repeats the reads and decoding that
    `Making.reads` recorded during the kept call.
    """

    def __init__(self, making: Making, *, with_reads: bool = False) -> None:
        self._making, self._with_reads = making, with_reads
        self._kept: dict[Any, list[tuple[Any, list[Read]]]] = {}
        self._number, self._calls = 0, 0
        self._given: list[tuple[Any, Any]] = []
        self.changes = False

    def __call__(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call the function and keep its result, or return the kept result."""
        making = self._making
        if not making.is_under_way:
            return call(*args, **kwargs)
        if making.keeps:
            return self._keep(call, args, kwargs)
        if self._number != making.number:
            self._number, self._calls = making.number, 0
        found = self._find(self._calls)
        self._calls += 1
        if found is None:
            return call(*args, **kwargs)
        value, reads = found
        for read in reads:
            read(args)
        return copy_of(value) if self.changes else renewed(value)

    def _keep(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        making = self._making
        outer, making.reads = making.reads, [] if self._with_reads else None
        making.arguments = args
        try:
            result = call(*args, **kwargs)
            self.keep(result, making.reads or ())
        finally:
            making.reads = outer
        return result

    def keep(self, result: Any, reads: Sequence[Read] = ()) -> None:
        """Keep the result of a call for the current sample."""
        kept = copy_of(result)
        self._kept.setdefault(self._making.keys[0], []).append((kept, list(reads)))
        self._given.append((kept, result))

    def _find(self, call: int) -> tuple[Any, list[Read]] | None:
        """The kept result for this call of the sample; `None` if no kept sample made such a call."""
        first = self._kept.get(self._making.key(0)) or next(iter(self._kept.values()), None)
        if first is None:
            return None
        found = self._kept.get(self._making.key(call // len(first))) or first
        return found[call % len(found)]

    def end_sample(self) -> None:
        """Finish a kept sample, and check whether a later call changed a result in place."""
        self.changes = self.changes or not all(is_same(kept, given) for kept, given in self._given)
        self._given.clear()
