"""What `Profiler.iter` returns: the user's loader in everything but that its batches are recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from loaderbench.errors import UsageError

_busy: dict[int, str] = {}  # id of a loader under way to the name of the profiler that records it


class ProfiledLoader:
    """Iterates over `source` through a profiler; every attribute, and the length, is the source's own."""

    __slots__ = ("_epoch", "_source")

    def __init__(self, source: Any, epoch: Callable[[Any], Iterator[Any]]) -> None:
        object.__setattr__(self, "_source", source)
        object.__setattr__(self, "_epoch", epoch)

    def __iter__(self) -> Iterator[Any]:
        epoch: Iterator[Any] = self._epoch(self._source)
        return epoch

    def __len__(self) -> int:
        return len(self._source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._source, name, value)

    def __repr__(self) -> str:
        return f"<profiled {self._source!r}>"


def check_free(source: Any) -> None:
    """Raise `UsageError` where a profiler is at work on the loader already."""
    if isinstance(source, ProfiledLoader):
        raise UsageError("the loader is profiled already: two profilers on one loader would measure each other")
    if id(source) in _busy:
        raise UsageError(
            f"profiler {_busy[id(source)]!r} is at work on this loader: two on one loader would measure each other"
        )


@contextmanager
def claimed(source: Any, name: str) -> Iterator[None]:
    """Keep others off the loader for an epoch."""
    check_free(source)
    _busy[id(source)] = name
    try:
        yield
    finally:
        _busy.pop(id(source), None)
