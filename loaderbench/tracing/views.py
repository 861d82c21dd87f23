"""A view of an object: it shares the object's attributes and class, but reads a few of them elsewhere.

A dataset, a `Compose` or a `DataLoader` is timed through a view, so that nothing of the user's is changed: what the
object's own methods set through the view is set on the object, because both have one `__dict__`.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Mapping
from typing import Any

_HARMLESS = ("builtins", "typing", "abc", "torch", "torchvision")

StandIns = Mapping[str, tuple[Any, Any]]
"""Attribute to what it holds, and what is to be read in its place while it holds that."""


class NoViewError(Exception):
    """The object cannot be viewed without a trace; the message says what keeps it from that."""


def view_class(base: type, stand_ins: StandIns, methods: Mapping[str, Callable[..., Any]]) -> type:
    """A subclass of `base` with stand-ins and `methods`. Raises `NoViewError` where subclassing would be noticed."""
    if type(base) not in (type, ABCMeta):
        raise NoViewError(f"{base.__name__} has a metaclass of its own")
    told = next(kind for kind in base.__mro__ if "__init_subclass__" in vars(kind))
    if told.__module__.partition(".")[0] not in _HARMLESS:
        raise NoViewError(f"{told.__name__} is told of its subclasses")
    members: dict[str, Any] = {name: _stand_in(name, *pair) for name, pair in stand_ins.items()}
    members |= {"__slots__": (), "__module__": base.__module__, "__qualname__": base.__qualname__, **methods}
    try:
        return type(base)(base.__name__, (base,), members)
    except TypeError as error:
        raise NoViewError(f"{base.__name__}: {error}") from None


def view_of(
    source: Any, stand_ins: StandIns | None = None, methods: Mapping[str, Callable[..., Any]] | None = None
) -> Any:
    """A view of `source`. Raises `NoViewError` where it has no `__dict__`, or keeps attributes outside of it."""
    base = type(source)
    if not hasattr(source, "__dict__") or any(vars(kind).get("__slots__") for kind in base.__mro__):
        raise NoViewError(f"{base.__name__} keeps its attributes in slots")
    try:
        view: Any = object.__new__(view_class(base, stand_ins or {}, methods or {}))
    except TypeError as error:  # a subclass of list, dict, ...
        raise NoViewError(f"{base.__name__}: {error}") from None
    object.__setattr__(view, "__dict__", vars(source))
    return view


def _stand_in(name: str, original: Any, value: Any) -> property:
    """Reads `value` until the attribute is set to something else."""

    def read(self: Any) -> Any:
        own = vars(self).get(name, original)
        return value if own is original else own

    def write(self: Any, new: Any) -> None:
        vars(self)[name] = new

    return property(read, write)
