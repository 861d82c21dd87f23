"""The wrapper that `Profiler.iter` returns: it behaves like the user's loader and records the batches."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from loaderbench.errors import UsageError
from loaderbench.profiler.references import Reference, kept_or_weak

_busy: dict[int, tuple[Reference, Any]] = {}  # by the id of a recorded loader: (loader, profiler)


class ProfiledLoader:
    """Iterates over `source` through a profiler. Attributes and length are those of `source`."""

    __slots__ = ("_epoch", "_source")

    def __init__(self, source: Any, epoch: Callable[[Any], Iterator[Any]]) -> None:
        object.__setattr__(self, "_source", source)
        object.__setattr__(self, "_epoch", epoch)

    def __iter__(self) -> Iterator[Any]:
        epoch: Iterator[Any] = self._epoch(self._source)
        return epoch

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: Any) -> Any:
        return self._source[index]

    def __bool__(self) -> bool:
        return bool(self._source)

    def __getattr__(self, name: str) -> Any:
        if name in ("_source", "_epoch", "_under_way"):  # copy and pickle look these up before they are set
            raise AttributeError(name)
        return getattr(self._source, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._source, name, value)

    def __repr__(self) -> str:
        return f"<profiled {self._source!r}>"

    def __copy__(self) -> ProfiledLoader:
        return type(self)(copy.copy(self._source), self._epoch)

    def __deepcopy__(self, memo: dict[int, Any]) -> ProfiledLoader:
        return type(self)(copy.deepcopy(self._source, memo), self._epoch)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the source alone: other processes are not profiled."""
        return _itself, (self._source,)


class ProfiledIterator(ProfiledLoader):
    """Wraps a source that is an iterator: `next` takes batches, too, and a later loop continues with the rest."""

    __slots__ = ("_under_way",)

    def __init__(self, source: Any, epoch: Callable[[Any], Iterator[Any]]) -> None:
        super().__init__(source, epoch)
        object.__setattr__(self, "_under_way", None)

    def __next__(self) -> Any:
        if self._under_way is None:
            object.__setattr__(self, "_under_way", super().__iter__())
        return next(self._under_way)

    def __iter__(self) -> Iterator[Any]:
        begun: Iterator[Any] | None = self._under_way
        object.__setattr__(self, "_under_way", None)
        return super().__iter__() if begun is None else begun


def profiled(source: Any, epoch: Callable[[Any], Iterator[Any]]) -> ProfiledLoader:
    """Wrap the source in an iterable whose epochs `epoch` records."""
    return (ProfiledIterator if hasattr(type(source), "__next__") else ProfiledLoader)(source, epoch)


def _itself(source: Any) -> Any:
    return source


def check_free(source: Any, owner: Any) -> None:
    """Raise `UsageError` if another profiler is already recording the loader."""
    if isinstance(source, ProfiledLoader):
        raise UsageError("this loader is already profiled; use one profiler per loader")
    known = _busy.get(id(source))
    if known is not None and known[0]() is source and known[1] is not owner:
        raise UsageError(f"profiler {known[1].name!r} is already recording this loader; use one profiler per loader")


@dataclass(frozen=True)
class Claim:
    """A loader reserved for one profiler, without keeping the loader alive."""

    source: Reference
    number: int

    def release(self) -> None:
        """Make the loader available to other profilers."""
        if (held := _busy.get(self.number)) and held[0] is self.source:
            del _busy[self.number]


def claim(source: Any, owner: Any) -> Claim:
    """Reserve the loader for a profiler until the claim is released. Raises `UsageError` if it is already reserved."""
    check_free(source, owner)
    found = Claim(kept_or_weak(source), id(source))
    _busy[found.number] = found.source, owner
    return found
