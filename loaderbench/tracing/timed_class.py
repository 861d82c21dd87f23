"""Gives one object timed methods, by changing its class to a subclass that passes for the original class."""

from __future__ import annotations

import dis
from _abc import _abc_init  # type: ignore[import-not-found]
from abc import ABCMeta
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from types import FunctionType
from typing import Any

Methods = dict[str, Callable[..., Any]]

_HARMLESS = ("builtins", "typing", "abc", "torch", "torchvision")
_CLASS: Any = vars(object)["__class__"]


def _functions_of(kind: type) -> Iterator[FunctionType]:
    """The methods of a user's class; none for a class of a library known to be harmless."""
    if kind.__module__.partition(".")[0] not in _HARMLESS:
        yield from (member for member in vars(kind).values() if isinstance(member, FunctionType))


def _would_recur(method: FunctionType) -> bool:
    """Whether the method calls `super(type(self), self)`, which recurses forever in a subclass."""
    code = method.__code__
    if not {"super", "type"} <= {*code.co_names}:
        return False
    steps = [step for step in dis.get_instructions(code) if step.opname != "PUSH_NULL"]
    return any(
        one.argval == "super" and other.argval == "type" and own.opname.startswith("LOAD_FAST")
        for one, other, own in zip(steps, steps[1:], steps[2:], strict=False)
    )


def set_class(found: Any, kind: type) -> None:
    """Set the class of an object, bypassing its `__setattr__`. Raises `TypeError` if the class forbids it."""
    _CLASS.__set__(found, kind)


def move_new_attributes(timed: type, base: type, members: Collection[str]) -> None:
    """Move the attributes that code has set through `type(self)` from a timed class to its base.

    `members` are the attributes of the timed class itself. Python adds some with double underscores later.
    """
    for name, value in list(vars(timed).items()):
        if name not in members and not (name.startswith("__") and name.endswith("__")):
            with suppress(TypeError):  # a class written in C forbids it
                type.__setattr__(base, name, value)
            type.__delattr__(timed, name)


def timed_class(base: Any, methods: Methods) -> type:
    """A subclass with timed methods that passes for its base. Raises `TypeError` if subclassing would be noticed."""
    if hasattr(base, "__torch_function__"):
        raise TypeError(f"results of {base.__name__} would be of the timed class")
    hook_owner = next(kind for kind in base.__mro__ if "__init_subclass__" in vars(kind))
    if hook_owner.__module__.partition(".")[0] not in _HARMLESS:
        raise TypeError(f"{base.__name__} cannot be subclassed for timing")
    if any(_would_recur(method) for kind in base.__mro__ for method in _functions_of(kind)):
        raise TypeError(f"{base.__name__} would call itself without an end")

    def reduce(self: Any, protocol: Any) -> Any:
        """Pickle and copy the object as one of its base class."""
        reduced: Any = base.__reduce_ex__(self, protocol)
        if not isinstance(reduced, tuple):
            return reduced
        arguments = tuple(base if part is timed else part for part in reduced[1])
        return (base if reduced[0] is timed else reduced[0], arguments, *reduced[2:])

    names = {"__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__}
    members = {**methods, "__slots__": (), "__class__": property(lambda _: base), "__reduce_ex__": reduce}
    timed = _subclass(base, {**names, **members})
    return timed


def _subclass(base: Any, members: dict[str, Any]) -> type:
    """A subclass of the same metaclass, made without the metaclass's own code, which could register or change it."""
    made: type = type.__new__(type(base), base.__name__, (base,), members)
    if isinstance(made, ABCMeta):
        _abc_init(made)  # its own caches for isinstance()
    return made
