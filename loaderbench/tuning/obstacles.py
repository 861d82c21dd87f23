"""Finds why a loader cannot be measured in forked copies of its process: objects it holds, or undivided samples."""

from __future__ import annotations

import io
import multiprocessing.queues
import os
import socket
import sqlite3
import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from itertools import islice
from multiprocessing.connection import _ConnectionBase
from threading import Thread
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from loaderbench.code_places import is_library
from loaderbench.tracing.other_loader import OtherLoader
from loaderbench.tuning.described import made_with

NO_FORK = "this system cannot fork, and trials run in forked copies of the process"
NOT_OF_TORCH = "only torch's DataLoader can be tuned; change num_workers of this loader by hand"
NOT_DIVIDED = "each worker would yield every sample of this IterableDataset"
MOST_OBJECTS = 20_000
MOST_OF_ONE = 200  # enough, since the files of a list are alike
_PARTS = ("dataset", "sampler", "collate_fn")
_IN_MEMORY = (io.BytesIO, io.StringIO)
_NOT_SHARED: tuple[tuple[tuple[type, ...], str], ...] = (
    ((socket.socket,), "an open connection"),
    ((sqlite3.Connection, sqlite3.Cursor), "an open database"),
    ((multiprocessing.queues.Queue, multiprocessing.queues.SimpleQueue, _ConnectionBase), "a queue or a pipe"),
)
_PLAIN = (str, bytes, int, float, complex, type(None), type, ModuleType)

MOST_FUNCTIONS = 500
_NEUTRAL = ("torch", "typing", "collections", "abc", "builtins")
_ASKS = ("get_worker_info", "worker_info")
_WITHIN: dict[type, str] = {
    **dict.fromkeys((MethodType, staticmethod, classmethod), "__func__"),
    property: "fget",
    partial: "func",
}


def why_not_tried(loader: Any) -> str:
    """Why the loader cannot be tried, in one line; empty if it can."""
    if not hasattr(os, "fork"):
        return NO_FORK
    if isinstance(loader, OtherLoader):
        return NOT_OF_TORCH
    if each_worker_gives_all(loader):
        return f"{NOT_DIVIDED} ({type(loader.dataset).__name__} does not call get_worker_info)"
    if names := _iterators_of(loader):
        return f"{type(loader).__name__} keeps an iterator in its attribute {names[0]}, which a copy would share"
    for name in _PARTS:
        part = getattr(loader, name, None)
        kind = type(part)
        if issubclass(kind, MethodType):  # a method of a model, for example, which holds more than loading needs
            continue
        for held in held_by(part):
            if why := _obstacle(held):
                called = part.__name__ if isinstance(part, FunctionType) else kind.__name__
                return f"the {name} ({called}) holds {why}"
    return ""


def _obstacle(held: Any) -> str:
    """Why this object does not survive a fork; empty if it does. Only types are checked; no user code is run."""
    from torch import Tensor

    kind = type(held)
    if issubclass(kind, Tensor) and held.is_cuda:
        return "a CUDA tensor, which a forked process cannot use; keep it on the CPU and copy batches instead"
    for kinds, what in _NOT_SHARED:
        if issubclass(kind, kinds):
            return f"{what}, which processes cannot share; open it in each worker instead"
    if issubclass(kind, Thread | Executor) and not _has_ended(held):
        return "a thread or a pool of them, which a forked process does not have; start it in each worker instead"
    if issubclass(kind, io.IOBase) and not issubclass(kind, _IN_MEMORY) and _is_open_for_reading(held):
        return "an open file, whose position processes would share; open it in each worker instead"
    return ""


def _is_open_for_reading(file: Any) -> bool:
    """Whether the file is open for reading; a log file or the terminal is no obstacle."""
    with suppress(Exception):  # the user's class can run arbitrary code
        return not file.closed and file.readable() and file not in (sys.stdin, sys.stdout, sys.stderr)
    return False


def _has_ended(held: Any) -> bool:
    return isinstance(held, Thread) and not held.is_alive()


def _iterators_of(loader: Any) -> list[str]:
    """Attributes in which the loader keeps an iterator, which a copy of the loader would share.

    A dataset or sampler can be an iterator by its class and restart in a copy; a generator cannot.
    """
    own = getattr(loader, "__dict__", {})
    kinds = [(name, type(held), Generator if name in _PARTS else Iterator) for name, held in own.items()]
    return [name for name, kind, iterates in kinds if name != "_iterator" and issubclass(kind, iterates)]


def held_by(part: Any) -> Iterator[Any]:
    """The object and everything held by its attributes and containers, once each. No user code is called."""
    waiting, met = [part], set[int]()
    while waiting and len(met) < MOST_OBJECTS:
        held = waiting.pop()
        if issubclass(type(held), _PLAIN) or id(held) in met:
            continue
        met.add(id(held))
        yield held
        if issubclass(type(held), Thread | Executor | io.IOBase):  # already reported, or no obstacle
            continue
        waiting.extend(islice(_parts(held), MOST_OF_ONE))


def _parts(held: Any) -> Iterable[Any]:
    kind = type(held)
    found: list[Any] = [*made_with(held)]
    if issubclass(kind, dict):
        found += dict.values(held)
    for sequence in (list, tuple, set, frozenset, deque):
        if issubclass(kind, sequence):
            found += sequence.__iter__(held)
    with suppress(AttributeError):
        found += object.__getattribute__(held, "__dict__").values()
    return [*found, *_in_slots(held)]


def _in_slots(held: Any) -> Iterator[Any]:
    for base in type(held).__mro__:
        for descriptor in vars(base).values():
            if isinstance(descriptor, MemberDescriptorType) and base.__module__ != "builtins":
                with suppress(AttributeError):  # the slot was never set
                    yield descriptor.__get__(held)


def each_worker_gives_all(loader: Any) -> bool:
    """Whether several workers may each yield every sample: torch leaves dividing an `IterableDataset` to its code.

    A dataset from a library is assumed to divide its samples. So is a dataset or `worker_init_fn` that asks which
    worker it runs in, directly or in a function that it calls. A loader that already has several workers is not
    checked.
    """
    from torch.utils.data import IterableDataset

    dataset = loader.dataset
    if not isinstance(dataset, IterableDataset) or loader.num_workers > 1:
        return False
    kinds = [kind for kind in type(dataset).__mro__ if kind.__module__.partition(".")[0] not in _NEUTRAL]
    if any(_is_of_library(kind) for kind in kinds):
        return False
    functions = [member for kind in kinds for member in vars(kind).values()]
    return not _asks_for_worker([*functions, loader.worker_init_fn])


def _is_of_library(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    return bool(file) and is_library(file)


def _asks_for_worker(members: list[Any]) -> bool:
    """Whether one of these functions, or a function that they call, asks torch for the current worker."""
    waiting, met = list(members), set[int]()
    while waiting and len(met) < MOST_FUNCTIONS:
        function = _function_of(waiting.pop())
        if function is None or id(function) in met:
            continue
        met.add(id(function))
        names = set(_names(function.__code__))
        if function.__name__ in _ASKS or not names.isdisjoint(_ASKS):
            return True
        waiting += _callees(function, names)
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
