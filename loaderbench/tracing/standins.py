"""What stands in for the parts of a dataset while it is traced: each times its call and then is what it stands for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from loaderbench.tracing.clock import thread
from loaderbench.tracing.tracer import Tracer
from loaderbench.tracing.views import NoViewError, StandIns, view_of

_TRANSFORM_LIBRARIES = ("torchvision", "albumentations", "kornia", "torch")
_TRANSFORM_WORDS = ("transform", "augment", "preprocess")


def timed(call: Callable[..., Any], tracer: Tracer, place: int) -> Callable[..., Any]:
    """A function that does what `call` does, and charges it to a stage."""
    clock = tracer.clock

    def run(*args: Any, **kwargs: Any) -> Any:
        if clock.ident != thread():
            return call(*args, **kwargs)
        clock.enter(place)
        try:
            return call(*args, **kwargs)
        finally:
            clock.leave()

    return run


def stand_ins(source: Any, tracer: Tracer) -> StandIns:
    """For each attribute of a dataset (or of what it is made of) that is a stage: what to read in its place."""
    found = {name: (value, _stand_in(name, value, tracer)) for name, value in _attributes(source).items()}
    return {name: pair for name, pair in found.items() if pair[1] is not None}


def _attributes(source: Any) -> dict[str, Any]:
    """The object's own attributes, and those of its classes that are no methods."""
    of_classes = {name: value for kind in reversed(type(source).__mro__) for name, value in vars(kind).items()}
    objects = {name: value for name, value in of_classes.items() if not name.startswith("__") and _is_object(value)}
    return {**objects, **vars(source)}


def _is_object(value: Any) -> bool:
    return callable(value) and not isinstance(value, type | FunctionType | staticmethod | classmethod)


def _stand_in(name: str, value: Any, tracer: Tracer) -> Any:
    if _is_dataset(value):
        return _inner_dataset(value, tracer)
    if isinstance(value, list | tuple) and value and all(_is_dataset(part) for part in value):
        return type(value)([_inner_dataset(part, tracer) for part in value])
    if not callable(value) or isinstance(value, type):
        return None
    if name == "loader":
        return _call(value, tracer, tracer.place("decode", "loader"))
    return _transform(value, name, tracer)


def _transform(value: Any, name: str, tracer: Tracer) -> Any:
    """A transform, step by step where it is made of steps."""
    steps = getattr(value, "transforms", None)
    if type(value).__name__ == "Compose" and isinstance(steps, list | tuple):
        timed_steps = type(steps)([_step(step, tracer) for step in steps])
        return _view_or_call(value, {"transforms": (steps, timed_steps)}, name, tracer)
    if type(value).__name__ == "StandardTransform":
        return _view_or_call(value, stand_ins(value, tracer), name, tracer)
    return _call(value, tracer, _place(value, name, tracer))


def _step(step: Any, tracer: Tracer) -> Any:
    nested = type(step).__name__ == "Compose"
    return _transform(step, "transform", tracer) if nested else _call(step, tracer, _place(step, "transform", tracer))


def _view_or_call(value: Any, replaced: StandIns, name: str, tracer: Tracer) -> Any:
    try:
        return view_of(value, replaced)
    except NoViewError:
        return _call(value, tracer, _place(value, name, tracer))


def _call(value: Any, tracer: Tracer, place: int) -> Any:
    """The same object, whose call is timed; a function where the object cannot be viewed."""
    if type(value).__module__ in ("builtins", "functools") or isinstance(value, functools.partial):
        run = timed(value, tracer, place)
        return functools.update_wrapper(run, value) if hasattr(value, "__name__") else run
    try:
        own = timed(type(value).__call__, tracer, place)
        return view_of(value, methods={"__call__": lambda _self, *args, **kwargs: own(value, *args, **kwargs)})
    except NoViewError:
        return timed(value, tracer, place)


def _place(value: Any, name: str, tracer: Tracer) -> int:
    """The stage of a callable: a transform by its library or its attribute's name, else a part of the sample."""
    part = getattr(value, "__name__", None) or getattr(getattr(value, "func", None), "__name__", None)
    part = (part or type(value).__name__).strip("<>")
    library = type(value).__module__.partition(".")[0]
    known = library in _TRANSFORM_LIBRARIES or any(word in name for word in _TRANSFORM_WORDS)
    return tracer.place("transform" if known else "sample", part if known else name)


def _is_dataset(value: Any) -> bool:
    """A dataset inside another: of torch's, or of the look of one."""
    kinds = {kind.__name__ for kind in type(value).__mro__}
    return "Dataset" in kinds and hasattr(type(value), "__getitem__")


def _inner_dataset(dataset: Any, tracer: Tracer) -> Any:
    try:
        return view_of(dataset, stand_ins(dataset, tracer), sample_methods(type(dataset), tracer))
    except NoViewError:
        return dataset


def sample_methods(base: type, tracer: Tracer) -> dict[str, Callable[..., Any]]:
    """`__getitem__`, `__getitems__` and `__iter__` of a dataset's class, with their samples counted."""
    methods: dict[str, Callable[..., Any]] = {}
    if (one := getattr(base, "__getitem__", None)) is not None:
        methods["__getitem__"] = lambda self, index: tracer.sample(one, self, index, index=index)
    if (many := getattr(base, "__getitems__", None)) is not None:
        methods["__getitems__"] = lambda self, indices: tracer.group(lambda asked: many(self, asked), indices)
    if "IterableDataset" in {kind.__name__ for kind in base.__mro__}:
        begin = base.__iter__  # type: ignore[attr-defined]
        methods = {"__iter__": lambda self: CountedIterator(begin(self), tracer)}
    return methods


class CountedIterator:
    """An iterable dataset's iterator, whose samples are counted; their index is a running number."""

    def __init__(self, samples: Any, tracer: Tracer) -> None:
        self._next, self._tracer, self._index = samples.__next__, tracer, -1

    def __iter__(self) -> CountedIterator:
        return self

    def __next__(self) -> Any:
        self._index += 1
        return self._tracer.sample(self._next, index=self._index)


class SampleProxy:
    """A dataset that cannot be viewed, with its samples counted all the same."""

    def __init__(self, dataset: Any, tracer: Tracer) -> None:
        self._dataset, self._tracer = dataset, tracer

    def __getitem__(self, index: Any) -> Any:
        return self._tracer.sample(self._dataset.__getitem__, index, index=index)

    def __iter__(self) -> CountedIterator:
        return CountedIterator(iter(self._dataset), self._tracer)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)
