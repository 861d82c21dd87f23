"""The methods of a dataset's class by which samples come, with every sample counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loaderbench.tracing.tracer import Tracer


def sample_methods(base: type, tracer: Tracer) -> dict[str, Callable[..., Any]]:
    """`__getitem__` and `__getitems__` of a class, or `__iter__` of an iterable one."""
    if "IterableDataset" in {kind.__name__ for kind in base.__mro__}:
        begin = base.__iter__  # type: ignore[attr-defined]
        return {"__iter__": lambda self: CountedIterator(begin(self), tracer)}
    methods: dict[str, Callable[..., Any]] = {}
    if (one := getattr(base, "__getitem__", None)) is not None:
        methods["__getitem__"] = lambda self, index: tracer.sample(index, one, self, index)
    if (many := getattr(base, "__getitems__", None)) is not None:
        methods["__getitems__"] = lambda self, indices: tracer.group(lambda asked: many(self, asked), indices)
    return methods


class CountedIterator:
    """An iterable dataset's iterator, whose samples are counted; their index is a running number."""

    def __init__(self, samples: Any, tracer: Tracer) -> None:
        self._samples, self._tracer, self._index = iter(samples), tracer, -1

    def __iter__(self) -> CountedIterator:
        return self

    def __next__(self) -> Any:
        self._index += 1
        return self._tracer.sample(self._index, next, self._samples)


class SampleProxy:
    """A dataset whose class can be given no method, with its samples counted all the same."""

    def __init__(self, dataset: Any, tracer: Tracer) -> None:
        self._dataset, self._tracer = dataset, tracer

    def __getitem__(self, index: Any) -> Any:
        return self._tracer.sample(index, self._dataset.__getitem__, index)

    def __iter__(self) -> CountedIterator:
        return CountedIterator(self._dataset, self._tracer)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)
