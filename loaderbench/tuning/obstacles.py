"""Why a loader cannot be measured in copies of its process."""

from __future__ import annotations

import io
import os
import socket
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from types import FunctionType, ModuleType
from typing import Any

from loaderbench.tuning.dividing import each_worker_gives_all

NO_FORK = "this system cannot fork a process, and a loader exists in its own process alone"
NOT_DIVIDED = "each worker would give all samples of this IterableDataset"
MOST_OBJECTS = 20_000
MOST_OF_ONE = 200  # of a list of files, all are alike
_FILES = (io.FileIO, io.BufferedReader, io.BufferedRandom)
_PLAIN = (str, bytes, int, float, complex, type(None), type, FunctionType, ModuleType)


def why_not_tried(loader: Any) -> str:
    """One line; empty where trials are possible."""
    if not hasattr(os, "fork"):
        return NO_FORK
    if each_worker_gives_all(loader):
        return f"{NOT_DIVIDED} ({type(loader.dataset).__name__} does not call get_worker_info)"
    for name in ("dataset", "sampler", "collate_fn"):
        part = getattr(loader, name, None)
        for held in _held_by(part):
            if why := _obstacle(held):
                return f"the {name} ({type(part).__name__}) holds {why}"
    return ""


def _obstacle(held: Any) -> str:
    """What of an object does not survive a fork; empty for all others. Types alone are asked, not the user's code."""
    from torch import Tensor

    kind = type(held)
    if issubclass(kind, Tensor) and held.is_cuda:
        return "a CUDA tensor, which a forked process cannot use; keep it on the CPU and copy batches instead"
    if issubclass(kind, socket.socket):
        return "an open connection, which processes cannot share; open it in each worker instead"
    if issubclass(kind, sqlite3.Connection):
        return "an open database, which processes cannot share; open it in each worker instead"
    if issubclass(kind, _FILES) and not held.closed:
        return "an open file, whose position processes would share; open it in each worker instead"
    return ""


def _held_by(part: Any) -> Iterator[Any]:
    """The object and what its attributes and containers hold, each once. None of the user's code is called."""
    waiting, met = [part], set[int]()
    while waiting and len(met) < MOST_OBJECTS:
        held = waiting.pop()
        if issubclass(type(held), _PLAIN) or id(held) in met:
            continue
        met.add(id(held))
        yield held
        waiting.extend(islice(_parts(held), MOST_OF_ONE))


def _parts(held: Any) -> Iterable[Any]:
    if type(held) is dict:
        return list(held.values())
    if type(held) in (list, tuple, set, frozenset):
        return held  # type: ignore[no-any-return]
    try:
        return list(object.__getattribute__(held, "__dict__").values())
    except AttributeError:
        return ()
