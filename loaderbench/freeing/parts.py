"""Finds the callables of a dataset that a stage consists of, as the tracer names them, and replaces them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence
from dataclasses import dataclass
from inspect import getattr_static
from types import FunctionType
from typing import Any

from loaderbench.freeing.order import CannotFreeError
from loaderbench.tracing.parts import attributes_of, is_dataset, maker_of, stage_of_callable

_WITHOUT_CLASS = ("builtins", "functools", "torch.jit")


@dataclass(frozen=True)
class Part:
    """A callable that a dataset holds. `stage` and `name` are as the tracer has them, such as `transform/Normalize`."""

    stage: str
    name: str
    value: Any
    holder: Any
    key: Any


def parts_of(dataset: Any) -> list[Part]:
    """What a dataset calls for a sample; a `Compose` as a whole, and before it each of its steps."""
    return list(_of_dataset(maker_of(dataset), set()))


def _of_dataset(dataset: Any, seen: set[int]) -> Iterator[Part]:
    if id(dataset) in seen:
        return
    seen.add(id(dataset))
    for name, value, holder in attributes_of(dataset):
        yield from _of_attribute(name, value, holder, seen)


def _of_attribute(name: str, value: Any, holder: Any, seen: set[int]) -> Iterator[Part]:
    if is_dataset(value):
        yield from _of_dataset(value, seen)
    elif isinstance(value, list | tuple) and value and all(map(is_dataset, value)):
        for part in value:
            yield from _of_dataset(part, seen)
    elif callable(value) and not isinstance(value, type):
        yield from _of_callable(name, value, holder, name, seen)


def _of_callable(name: str, value: Any, holder: Any, key: Any, seen: set[int]) -> Iterator[Part]:
    if id(value) in seen:
        return
    seen.add(id(value))
    if type(value).__name__ == "StandardTransform":
        for own, part, own_holder in attributes_of(value):
            yield from _of_attribute(own, part, own_holder, seen)
        return
    steps = getattr(value, "transforms", None)
    is_composed = type(value).__name__ == "Compose" and isinstance(steps, list | tuple)
    for place, step in enumerate(steps if is_composed and steps else ()):
        yield from _of_callable("transform", step, steps, place, seen)
    stage, part = ("transform", "") if is_composed else stage_of_callable(name, value)
    yield Part(stage, part, value, holder, key)


def outermost(parts: list[Part]) -> list[Part]:
    """Those that are no step of another."""
    steps = {id(step) for part in parts for step in getattr(part.value, "transforms", None) or () if not part.name}
    return [part for part in parts if id(part.value) not in steps]


Around = Callable[..., Any]
"""Called with the original, bound to its object, and the arguments."""


def replace_part(part: Part, around: Around) -> None:
    """Call `around` in place of it. Raises `CannotFreeError` where nothing can be put in its place."""
    kind = type(part.value)
    has_code = isinstance(getattr_static(kind, "__call__", None), FunctionType)
    if has_code and not kind.__module__.startswith(_WITHOUT_CLASS):
        replace_method(part.value, "__call__", around)
    elif isinstance(part.holder, MutableMapping | MutableSequence):
        part.holder[part.key] = _function(part.value, around)
    else:
        raise CannotFreeError(f"{part.name or kind.__name__} is stored where it cannot be replaced")


def _function(value: Any, around: Around) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        return around(value, *args, **kwargs)

    named = getattr(value, "func", value)  # of a partial
    return functools.update_wrapper(run, named, ("__module__", "__name__", "__qualname__", "__doc__"))


def replace_method(found: Any, name: str, around: Around) -> None:
    """Give one object another method; Python looks special ones up on the class, whose other objects keep theirs.

    Raises `CannotFreeError` for a class that takes no method. Only for a process of our own: it is never undone.
    """
    kind = type(found)
    original = getattr(kind, name)

    @functools.wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self is not found:
            return original(self, *args, **kwargs)
        return around(functools.partial(original, self), *args, **kwargs)

    try:
        setattr(kind, name, run)
    except TypeError:
        raise CannotFreeError(f"{kind.__name__} has no Python code that can be replaced") from None
