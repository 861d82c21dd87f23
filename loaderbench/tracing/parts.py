"""Finds the parts of a dataset: objects whose calls are stages, and functions that it holds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from inspect import getattr_static, signature
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Protocol

from loaderbench.tracing.taking import has_state
from loaderbench.tracing.timed_class import Methods

MAX_DATASETS = 200  # limit for nested datasets; samples of the others are timed as one stage
_TRANSFORM_LIBRARIES = ("torchvision", "albumentations", "kornia", "torch", "monai", "fastai", "fastcore")
_FASTAI = "fastai.data.load"
_STAGES = {"loader": "decode", "reader": "read"}
"""Stages of callable attributes: torchvision's `loader`, and the `reader` of our own copies in another format."""

_TRANSFORM_WORDS = ("transform", "augment", "preprocess")
_WITHOUT_CLASS = ("builtins", "functools", "torch.jit")  # modules whose callables have a class that cannot be patched


class SampleTimer(Protocol):
    """Times samples, batches and their stages: a `Tracer`, or a dispatcher to the calling thread's tracer.

    `decoding` holds the stages that already count as decoding.
    """

    decoding: set[int]

    def place(self, stage: str, part: str = "") -> int:
        """The number assigned to a part of a stage."""
        ...

    def sample(self, index: Any, call: Callable[..., Any], *args: Any) -> Any:
        """Call a function that loads a sample."""
        ...

    def group(self, call: Callable[[Any], Any], indices: Sequence[Any]) -> Any:
        """Call a function that loads several samples at once."""
        ...

    def collate(self, call: Callable[[Any], Any], samples: Any) -> Any:
        """Call a function that collates samples into a batch."""
        ...

    def forget_unfinished_batch(self) -> None:
        """Assign the samples made since the last batch to no batch."""

    def timed(self, call: Callable[..., Any], place: int) -> Callable[..., Any]:
        """Wrap `call` to charge its time to a stage."""
        ...


@dataclass
class Held:
    """A function in an attribute or a list, and the replacement that times it."""

    holder: Any
    key: Any
    original: Any
    replacement: Any


@dataclass
class Parts:
    """The objects to time, with their timed methods, and the functions to replace."""

    objects: list[tuple[Any, Methods]] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)


class TimedFunction:
    """A function whose calls are timed.

    It compares equal to the original, pickles as it, and has its attributes and its signature.
    """

    def __init__(self, own: Any, timed: Callable[..., Any]) -> None:
        self._own, self._timed = own, timed

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, timed."""
        return self._timed(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return bool(self._own == (other._own if isinstance(other, TimedFunction) else other))

    def __hash__(self) -> int:
        return hash(self._own)

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self._own,)

    def __getattr__(self, name: str) -> Any:
        if name == "_own":  # copy looks this up before it is set
            raise AttributeError(name)
        return signature(self._own) if name == "__signature__" else getattr(self._own, name)


def _itself(function: Any) -> Any:
    """What a pickled `TimedFunction` is loaded as: the original function."""
    return function


class Finder:
    """Walks through a dataset once and collects its parts."""

    def __init__(self, tracer: SampleTimer) -> None:
        self._tracer = tracer
        self._seen: set[int] = set()
        self._datasets = 0
        self.parts = Parts()

    def dataset(self, dataset: Any, *, inside: bool = True) -> Parts:
        """Add a dataset and, if `inside`, its parts and the datasets within it."""
        dataset = maker_of(dataset)
        if id(dataset) in self._seen or self._datasets >= MAX_DATASETS:
            return self.parts
        self._seen.add(id(dataset))
        self._datasets += 1
        methods = sample_methods(type(dataset), self._tracer)
        if self._datasets > 1:  # an inner dataset's iterator stays untimed: it makes samples for the outer one
            methods.pop("__iter__", None)
        self.parts.objects.append((dataset, methods))
        if inside:
            for name, value, holder in attributes_of(dataset):
                self._attribute(name, value, holder)
        return self.parts

    def _attribute(self, name: str, value: Any, holder: Any) -> None:
        if is_dataset(value):
            self.dataset(value)
        elif isinstance(value, list | tuple) and value and all(map(is_dataset, value)):
            for part in value:
                self.dataset(part)
        elif callable(value) and not isinstance(value, type):
            self._callable(name, value, holder, name)

    def _callable(self, name: str, value: Any, holder: Any, key: Any) -> None:
        steps = getattr(value, "transforms", None) if type(value).__name__ == "Compose" else None
        if isinstance(steps, list | tuple):
            for place, step in enumerate(steps):
                self._callable("transform", step, steps, place)
        elif type(value).__name__ == "StandardTransform":
            for own, part, own_holder in attributes_of(value):
                self._attribute(own, part, own_holder)
        elif id(value) not in self._seen:
            self._time(value, self._place(name, value), holder, key)

    def _time(self, value: Any, place: int, holder: Any, key: Any) -> None:
        kind = type(value)
        if not kind.__module__.startswith(_WITHOUT_CLASS) and isinstance(
            getattr_static(kind, "__call__", None), FunctionType
        ):
            self._seen.add(id(value))
            self.parts.objects.append((value, {"__call__": self._tracer.timed(kind.__call__, place)}))
        elif isinstance(holder, MutableMapping | MutableSequence):
            replacement = self._timed_function(value, place)
            if replacement is not None:
                self.parts.held.append(Held(holder, key, value, replacement))

    def _timed_function(self, value: Any, place: int) -> Any:
        """A timed function, method or partial that passes for `value`; `None` for any other type."""

        def timed(call: Any) -> TimedFunction:
            return TimedFunction(call, self._tracer.timed(call, place))

        if isinstance(value, MethodType):
            return MethodType(timed(value.__func__), value.__self__)
        if type(value) is functools.partial:
            return functools.partial(timed(value.func), *value.args, **value.keywords)
        return timed(value) if isinstance(value, FunctionType | BuiltinFunctionType) else None

    def _place(self, name: str, value: Any) -> int:
        place = self._tracer.place(*stage_of_callable(name, value))
        if name == "loader":
            self._tracer.decoding.add(place)
        return place


def stage_of_callable(name: str, value: Any) -> tuple[str, str]:
    """Stage and part: decode for a `loader`, read for a `reader`, a transform by library or name, else `sample`."""
    if name in _STAGES:
        return _STAGES[name], name
    part = _name_of(value).strip("<>")
    library = type(value).__module__.partition(".")[0]
    known = library in _TRANSFORM_LIBRARIES or any(word in name for word in _TRANSFORM_WORDS)
    return ("transform", part) if known else ("sample", name)


def _name_of(value: Any) -> str:
    """The name of a function, or of the function that a partial calls; else of the class. Runs no user code."""
    kind = type(value)
    if kind is functools.partial:
        return _name_of(value.func)
    if issubclass(kind, FunctionType | BuiltinFunctionType | MethodType | type):
        return str(value.__name__)
    wrapped = vars(value).get("__name__") if kind.__dictoffset__ else None
    return wrapped if isinstance(wrapped, str) else kind.__name__


def attributes_of(source: Any) -> Iterator[tuple[str, Any, Any]]:
    """Name, value and holder of the object's own attributes, and of callable objects (not methods) on its classes."""
    own = vars(source) if hasattr(source, "__dict__") else {}
    for name, value in list(own.items()):
        yield name, value, own
    for kind in type(source).__mro__:
        for name, value in list(vars(kind).items()):
            is_object = callable(value) and not isinstance(value, type) and not hasattr(type(value), "__get__")
            if is_object and name not in own and not name.startswith("__"):
                yield name, value, None


def is_dataset(value: Any) -> bool:
    """Whether `value` is a dataset: torch's, or one that looks like it."""
    kinds = {kind.__name__ for kind in type(value).__mro__}
    return "Dataset" in kinds and (hasattr(type(value), "__getitem__") or hasattr(type(value), "__iter__"))


def maker_of(dataset: Any) -> Any:
    """The object that makes the samples.

    fastai passes torch a dummy dataset, whose attribute `d` is the fastai loader that makes entire batches.
    """
    return dataset.d if type(dataset).__module__ == _FASTAI and hasattr(dataset, "d") else dataset


def sample_methods(base: Any, tracer: SampleTimer) -> dict[str, Callable[..., Any]]:
    """Timed `__getitem__` and `__getitems__` of a class, `__iter__` of an iterable one, or fastai's loader methods."""
    if any((kind.__module__, kind.__name__) == (_FASTAI, "DataLoader") for kind in base.__mro__):
        item, batch = base.do_item, base.do_batch
        return {
            "do_item": lambda self, index: tracer.sample(index or 0, item, self, index),
            "do_batch": lambda self, samples: tracer.collate(functools.partial(batch, self), samples),
        }
    if "IterableDataset" in {kind.__name__ for kind in base.__mro__}:
        begin = base.__iter__
        return {"__iter__": lambda self: counted(begin(self), tracer)}
    methods: dict[str, Callable[..., Any]] = {}
    if (one := getattr(base, "__getitem__", None)) is not None:
        methods["__getitem__"] = _one_sample(one, tracer)
    if (many := getattr(base, "__getitems__", None)) is not None:
        methods["__getitems__"] = _many_samples(many, tracer)
    return methods


def _one_sample(original: Callable[..., Any], tracer: SampleTimer) -> Callable[..., Any]:
    """A timed `__getitem__`. A dataset that calls its own `__getitem__` can pass more arguments than an index."""

    def item(self: Any, *args: Any, **named: Any) -> Any:
        index = args[0] if args else next(iter(named.values()), None)
        return tracer.sample(index, functools.partial(original, **named) if named else original, self, *args)

    return item


def _many_samples(original: Callable[..., Any], tracer: SampleTimer) -> Callable[..., Any]:
    """A timed `__getitems__`, which accepts more arguments like `_one_sample`."""

    def items(self: Any, *args: Any, **named: Any) -> Any:
        if not args:
            return original(self, **named)
        return tracer.group(lambda indices: original(self, indices, *args[1:], **named), args[0])

    return items


class CountedIterator:
    """An iterable dataset's iterator that counts its samples, whose index is a running number.

    All other attributes are those of the original iterator.
    """

    def __init__(self, samples: Iterator[Any], tracer: SampleTimer) -> None:
        self._samples, self._tracer, self._index = samples, tracer, -1
        tracer.forget_unfinished_batch()

    def __iter__(self) -> CountedIterator:
        return self

    def __next__(self) -> Any:
        self._index += 1
        return self._tracer.sample(self._index, next, self._samples)

    def __getattr__(self, name: str) -> Any:
        if name == "_samples":  # copy looks this up before it is set
            raise AttributeError(name)
        return getattr(self._samples, name)


class _CountedStateful(CountedIterator):
    """A counted iterator that torchdata saves with a checkpoint, and restores from it."""

    def state_dict(self) -> Any:
        """The state of the original iterator."""
        own: Any = self._samples
        return own.state_dict()

    def load_state_dict(self, state: Any) -> None:
        """Restore the original iterator."""
        own: Any = self._samples
        own.load_state_dict(state)


def counted(samples: Iterator[Any], tracer: SampleTimer) -> CountedIterator:
    """Wrap the iterator to count its samples; the wrapper has a state if the iterator has one."""
    return (_CountedStateful if has_state(samples) else CountedIterator)(samples, tracer)


class SampleProxy:
    """Counts the samples of a dataset whose class cannot be patched."""

    def __init__(self, dataset: Any, tracer: SampleTimer) -> None:
        self._dataset, self._tracer = dataset, tracer

    def is_of(self, dataset: Any) -> bool:
        """Whether this object counts the samples of `dataset`."""
        return self._dataset is dataset

    def __getitem__(self, index: Any) -> Any:
        return self._tracer.sample(index, self._dataset.__getitem__, index)

    def __iter__(self) -> CountedIterator:
        return counted(iter(self._dataset), self._tracer)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._dataset, name)
        return functools.partial(self._tracer.group, found) if name == "__getitems__" else found
