"""Finds out whether an `IterableDataset` divides its samples among workers, which torch leaves to the dataset."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.queues import Queue, SimpleQueue
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from torch.utils.data import IterableDataset

from loaderbench.code_places import RECEIVING, is_library

MOST_FUNCTIONS = 500
MOST_STREAMS = 100
_NEUTRAL = ("torch", "typing", "collections", "abc", "builtins")
_ASKS = ("get_worker_info", "worker_info")
_SHARDED = "apply_sharding"
"""The method of torch's datapipes that a `DataLoader` calls in each worker."""
_RECEIVERS = (Queue, SimpleQueue, Connection)
_WITHIN: dict[type, str] = {
    **dict.fromkeys((MethodType, staticmethod, classmethod), "__func__"),
    property: "fget",
    partial: "func",
}


def is_undivided(dataset: Any, worker_init_fn: Any = None) -> bool:
    """Whether each of several workers may yield every sample of an `IterableDataset`; no user code is run.

    A dataset from a library is assumed to divide its samples. So is a dataset that asks which worker it runs in: in its
    own code, in a function that it calls, in an object that it holds, or in `worker_init_fn`. What its own code
    receives from another process, through a queue or a pipe, goes to one worker only.
    """
    if not isinstance(dataset, IterableDataset):
        return False
    streams = [*_streams(dataset)]
    kinds = [kind for stream in streams for kind in type(stream).__mro__ if not _is_neutral(kind)]
    if any(_is_of_library(kind) for kind in kinds) or any(hasattr(type(stream), _SHARDED) for stream in streams):
        return False
    members = [member for kind in kinds for member in vars(kind).values()]
    held = [value for stream in streams for value in _held(stream)]
    if _receives(members, held):
        return False
    return not _asks_for_worker([*members, *held, worker_init_fn])


def _streams(dataset: Any) -> Iterator[Any]:
    """The dataset, and each iterable dataset that it holds."""
    waiting, met = [dataset], set[int]()
    while waiting and len(met) < MOST_STREAMS:
        stream = waiting.pop()
        if id(stream) in met:
            continue
        met.add(id(stream))
        yield stream
        waiting += [held for held in _held(stream) if issubclass(type(held), IterableDataset)]


def _held(holder: Any) -> Iterator[Any]:
    """The values of an object's attributes, and the items of those that are lists, tuples or dictionaries."""
    own: Mapping[str, Any] = {}
    with suppress(AttributeError):
        own = object.__getattribute__(holder, "__dict__")
    for value in [*own.values()]:
        yield value
        parts: Iterable[Any] = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
        yield from islice(parts, MOST_STREAMS)


def _is_neutral(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _NEUTRAL


def _is_of_library(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    return bool(file) and is_library(file)


def _receives(members: list[Any], held: list[Any]) -> bool:
    """Whether one of these functions receives from a queue or a pipe that is held, or that is in its reach."""
    for function in filter(None, map(_function_of, members)):
        names = set(_names(function.__code__))
        sources = [*held, *_callees(function, names)] if names & RECEIVING else []
        if any(issubclass(type(source), _RECEIVERS) for source in sources):
            return True
    return False


def _asks_for_worker(members: list[Any]) -> bool:
    """Whether one of these functions, or a function that they call, asks torch for the current worker."""
    waiting, met = list(members), set[int]()
    while waiting and len(met) < MOST_FUNCTIONS:
        member = waiting.pop()
        function = _function_of(member)
        if function is None or id(function) in met:
            continue
        met.add(id(function))
        names = set(_names(function.__code__))
        if function.__name__ in _ASKS or not names.isdisjoint(_ASKS):
            return True
        waiting += [*_callees(function, names), *_held(member)]
    return False


def _function_of(member: Any) -> FunctionType | None:
    """The function behind a method, property, partial or callable object, found by types alone."""
    while name := next((name for kind, name in _WITHIN.items() if issubclass(type(member), kind)), ""):
        member = getattr(member, name)
    found = member if type(member) is FunctionType else vars(type(member)).get("__call__")
    return found if type(found) is FunctionType else None


def _names(code: CodeType) -> Iterator[str]:
    """All names used in a code object and in the functions nested in it."""
    yield from code.co_names
    yield from code.co_freevars
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names(part)


def _callees(function: FunctionType, names: set[str]) -> Iterator[Any]:
    """Objects that a function may call by these names: in its closure, its module, and modules that it uses."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # the cell is empty
            yield cell.cell_contents
    for name in names & function.__globals__.keys():
        found = function.__globals__[name]
        if type(found) is ModuleType and not is_library(vars(found).get("__file__") or ""):
            yield from (vars(found)[one] for one in names & vars(found).keys())
        elif issubclass(type(found), type):
            yield from vars(found).values()
        else:
            yield found
