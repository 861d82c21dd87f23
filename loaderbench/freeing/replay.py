"""Replay the results of calls, sample by sample, in the process that loads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

from loaderbench.freeing.values import copy_of, is_same, renewed

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
