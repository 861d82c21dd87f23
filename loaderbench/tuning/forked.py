"""Calls a function in a forked copy of this process, and finds why a loader cannot be measured there.

Such a loader holds objects that processes cannot share, or would yield every sample in each worker.
"""

from __future__ import annotations

import gc
import io
import multiprocessing
import multiprocessing.queues
import os
import signal
import socket
import sqlite3
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing.connection import Connection, _ConnectionBase
from threading import Thread
from types import FunctionType, GeneratorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, Generic, TypeVar

from loaderbench.runner.processes import enter_own_session
from loaderbench.runner.scratch import leave_scratch
from loaderbench.tracing.other_loader import OtherLoader
from loaderbench.tuning.described import made_with

NO_FORK = "this system cannot fork, and trials run in forked copies of the process"
NOT_OF_TORCH = "only torch's DataLoader can be tuned; change num_workers of this loader by hand"
NOT_DIVIDED = "each worker would yield every sample of this IterableDataset"
MOST_OBJECTS = 20_000
MOST_OF_ONE = 200  # enough, since the files of a list are alike
_PARTS = ("dataset", "sampler", "batch_sampler", "collate_fn", "worker_init_fn")
_IN_WORKERS = "in each worker instead"
_OPENED_HERE = (
    "With num_workers=0, the main process opens what the dataset opens when it loads a sample; "
    "if that is the case, set num_workers=1 and tune again"
)
_IN_MEMORY = (io.BytesIO, io.StringIO)
_NOT_SHARED: tuple[tuple[tuple[type, ...], str], ...] = (
    ((socket.socket,), "an open connection"),
    ((sqlite3.Connection, sqlite3.Cursor), "an open database"),
    ((multiprocessing.queues.Queue, multiprocessing.queues.SimpleQueue, _ConnectionBase), "a queue or a pipe"),
)
_PLAIN = (str, bytes, int, float, complex, type(None), type, ModuleType)


def why_not_tried(loader: Any) -> str:
    """Why the loader cannot be tried, in one line; empty if it can."""
    if not hasattr(os, "fork"):
        return NO_FORK
    if isinstance(loader, OtherLoader):
        return NOT_OF_TORCH
    if _is_undivided(loader):
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
                opened_here = why.endswith(_IN_WORKERS) and getattr(loader, "num_workers", None) == 0
                return f"the {name} ({called}) holds {why}{f'. {_OPENED_HERE}' if opened_here else ''}"
    return ""


def _is_undivided(loader: Any) -> bool:
    """Whether more workers can yield every sample several times. A loader that already has several is not checked."""
    from loaderbench.dataset_traits import is_undivided

    return is_undivided(loader.dataset, getattr(loader, "worker_init_fn", None)) and loader.num_workers <= 1


def _obstacle(held: Any) -> str:
    """Why this object does not survive a fork; empty if it does. Only types are checked; no user code is run."""
    from torch import Tensor

    kind = type(held)
    if issubclass(kind, Tensor) and held.is_cuda:
        return "a CUDA tensor, which a forked process cannot use; keep it on the CPU and copy batches instead"
    for kinds, what in _NOT_SHARED:
        if issubclass(kind, kinds):
            return f"{what}, which processes cannot share; open it {_IN_WORKERS}"
    if issubclass(kind, Thread | Executor) and not _has_ended(held):
        return f"a thread or a pool of them, which a forked process does not have; start it {_IN_WORKERS}"
    if issubclass(kind, io.IOBase) and not issubclass(kind, _IN_MEMORY) and _is_open_for_reading(held):
        return f"an open file, whose position processes would share; open it {_IN_WORKERS}"
    return ""


def _is_open_for_reading(file: Any) -> bool:
    """Whether the file is open for reading; a log file or the terminal is not an obstacle."""
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
    """The object and everything held by its attributes, containers and iterators, once each. No user code is called."""
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
    if any("__next__" in vars(base) for base in kind.__mro__):
        found += _held_by_iterator(held)
    with suppress(AttributeError):
        found += object.__getattribute__(held, "__dict__").values()
    return [*found, *_in_slots(held)]


def _held_by_iterator(held: Any) -> list[Any]:
    """What an iterator of Python or C refers to, such as the file behind `map(str.strip, file)`.

    For a generator, these are its variables, and the iterators of its loops.
    """
    frame = held.gi_frame if sys.version_info < (3, 11) and type(held) is GeneratorType else None
    if frame is None:
        return gc.get_referents(held)
    return [one for one in gc.get_referents(frame) if one is not frame.f_globals and one is not frame.f_builtins]


def _in_slots(held: Any) -> Iterator[Any]:
    for base in type(held).__mro__:
        for descriptor in vars(base).values():
            if isinstance(descriptor, MemberDescriptorType) and base.__module__ != "builtins":
                with suppress(AttributeError):  # the slot was never set
                    yield descriptor.__get__(held)


Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Returned(Generic[Answer]):
    """What the function returned, or its exception as one line. `interrupted`: Ctrl-C ended the call early."""

    answer: Answer | None = None
    raised: str = ""
    interrupted: bool = False


def call_in_copy(function: Callable[[], Answer]) -> Returned[Answer]:
    """Call the function in a forked process that has its own session, and wait for the result.

    Ctrl-C is passed on to the child process; a second one raises `KeyboardInterrupt` here. The fork happens in a
    separate thread, as in `ForkingServer`. Raises `OSError` if no process can be forked.
    """
    parent_end, child_end = multiprocessing.Pipe(duplex=True)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the script can replace the stream by any object
            stream.flush()  # otherwise the child process would write buffered text again
    forked: list[int | OSError] = []

    def fork() -> None:
        try:
            pid = os.fork()
        except OSError as error:
            forked.append(error)
            return
        if pid == 0:
            parent_end.close()
            _send_result_and_exit(function, child_end)
        forked.append(pid)

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    child_end.close()
    if isinstance(forked[0], OSError):
        raise forked[0]
    return _wait_for_result(parent_end, forked[0])


def _send_result_and_exit(function: Callable[[], Any], pipe: Connection) -> None:
    """Send the result and exit. Never returns, because the callers belong to the parent process."""
    try:
        enter_own_session(pipe)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            result = Returned(answer=function())
        except BaseException as error:
            result = Returned(raised="".join(traceback.format_exception_only(type(error), error)).strip())
        pipe.send(result)
    finally:
        leave_scratch()
        os._exit(0)


def _wait_for_result(pipe: Connection, pid: int) -> Returned[Any]:
    interrupted = False
    while True:
        try:
            found: Returned[Any] = pipe.recv()
        except KeyboardInterrupt:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if interrupted else signal.SIGINT)
            if interrupted:
                raise
            interrupted = True
            continue
        except (EOFError, OSError):
            found = Returned(raised="the process that tunes was killed")
        pipe.close()
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        return replace(found, interrupted=interrupted)
