"""Whether the workers of a loader share its samples, or each of them gives all."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from loaderbench.code_places import is_library

MOST_FUNCTIONS = 500
_NEUTRAL = ("torch", "typing", "collections", "abc", "builtins")
_ASKS = ("get_worker_info", "worker_info")
_WITHIN: dict[type, str] = {
    **dict.fromkeys((MethodType, staticmethod, classmethod), "__func__"),
    property: "fget",
    partial: "func",
}


def each_worker_gives_all(loader: Any) -> bool:
    """Whether more workers may give every sample several times: torch leaves it to an `IterableDataset` to divide them.

    A dataset of a library is taken to divide them, and so is a dataset or a `worker_init_fn` whose code, or a function
    that it calls, asks which worker it is in. A loader that has several workers already is not questioned.
    """
    from torch.utils.data import IterableDataset

    dataset = loader.dataset
    if not isinstance(dataset, IterableDataset) or loader.num_workers > 1:
        return False
    kinds = [kind for kind in type(dataset).__mro__ if kind.__module__.partition(".")[0] not in _NEUTRAL]
    if any(_is_of_library(kind) for kind in kinds):
        return False
    functions = [member for kind in kinds for member in vars(kind).values()]
    return not _asks([*functions, loader.worker_init_fn])


def _is_of_library(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    return bool(file) and is_library(file)


def _asks(members: list[Any]) -> bool:
    """Whether one of these functions, or one that they call, asks torch which worker it is in."""
    waiting, met = list(members), set[int]()
    while waiting and len(met) < MOST_FUNCTIONS:
        function = _function_of(waiting.pop())
        if function is None or id(function) in met:
            continue
        met.add(id(function))
        names = set(_names(function.__code__))
        if function.__name__ in _ASKS or not names.isdisjoint(_ASKS):
            return True
        waiting += _called(function, names)
    return False


def _function_of(member: Any) -> FunctionType | None:
    """The function behind a method, a property, a partial or an object that is called like one, by types alone."""
    while name := next((name for kind, name in _WITHIN.items() if issubclass(type(member), kind)), ""):
        member = getattr(member, name)
    found = member if type(member) is FunctionType else vars(type(member)).get("__call__")
    return found if type(found) is FunctionType else None


def _names(code: CodeType) -> Iterator[str]:
    """All names that its code uses, and those of functions within."""
    yield from code.co_names
    yield from code.co_freevars
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names(part)


def _called(function: FunctionType, names: set[str]) -> Iterator[Any]:
    """What it may call: functions by these names in its closure, in its module, and in modules that it uses."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # empty
            yield cell.cell_contents
    for name in names & function.__globals__.keys():
        found = function.__globals__[name]
        if type(found) is ModuleType and not is_library(vars(found).get("__file__") or ""):
            yield from (vars(found)[one] for one in names & vars(found).keys())
        elif issubclass(type(found), type):
            yield from vars(found).values()
        else:
            yield found
