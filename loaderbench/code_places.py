"""Places in Python code (calls and lines): who owns them, how to display them, how to read those of other threads."""

from __future__ import annotations

import gc
import linecache
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath
from typing import NamedTuple

_LIBRARY = re.compile(r"/lib(64)?/python3[^/]*/((site|dist)-packages/)?|[/\\\\](site|dist)-packages[/\\\\]|^$")
_OWN = f"{PurePath(__file__).parent}{os.sep}"
RECEIVING = frozenset(("get", "get_nowait", "recv", "recv_bytes"))
"""Methods of Python's queues and pipes that receive from another process."""

_PYTHON = f"{sys.base_prefix}/lib/python"


class CodeFrame(NamedTuple):
    """A call: the function, with its class if known, its file and the current line."""

    file: str
    line: int
    function: str


class CodeStack(NamedTuple):
    """The calls of a loading thread, outermost first; `stage` is empty if only the calls reveal it."""

    stage: str
    frames: tuple[CodeFrame, ...]


@dataclass(frozen=True)
class CodeLine:
    """A line of the user's code that creates a loader. `library` is the module that it calls to do so, if any."""

    file: str
    line: int
    library: str = ""

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


def is_library(file: str) -> bool:
    """Whether a file belongs to Python or to an installed package, by its path.

    A name such as `<ipython-input-1-abc>` is a notebook cell of the user if Python knows its lines. Code that a package
    generated is not, although Python may know its lines too: attrs and sympy put the word "generated" in its name.
    """
    if file.startswith("<"):
        return not file.endswith(">") or "generated" in file or file not in linecache.cache
    return _is_path_of_library(file)


@lru_cache(maxsize=4096)
def _is_path_of_library(file: str) -> bool:
    return file.startswith(_PYTHON) or _LIBRARY.search(file) is not None


def is_ours(file: str) -> bool:
    """Whether a file belongs to loaderbench."""
    return file.startswith(_OWN)


def shown_path(file: str, folder: str) -> str:
    """Shorten a path: relative to `folder` or to its package folder, else its name. A cell's name stays unchanged."""
    if file.startswith("<"):
        return file
    matches = [*_LIBRARY.finditer(file)]
    if matches and file[matches[-1].end() :]:
        return file[matches[-1].end() :]
    path = PurePath(file)
    return str(path.relative_to(folder)) if folder and path.is_relative_to(folder) else path.name


@contextmanager
def without_collection() -> Iterator[None]:
    """Keep Python before 3.12 from collecting garbage while it creates the frames of another thread.

    Creating frames allocates, which can start a collection, and a finalizer can let the other thread run. That thread
    then frees a frame that is still being read (segmentation fault), or starts a thread and waits for a lock that is
    held here (deadlock). Source: CPython issue 106883.
    """
    if sys.version_info >= (3, 12):
        yield
        return
    _without.enter()
    try:
        yield
    finally:
        _without.leave()


class _WithoutCollection:
    """Disables collection until the last thread has left."""

    def __init__(self) -> None:
        self._lock, self._inside, self._collected = threading.Lock(), 0, False

    def enter(self) -> None:
        with self._lock:
            if not self._inside:
                self._collected = gc.isenabled()
                gc.disable()
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside = max(0, self._inside - 1)  # 0 in a process forked meanwhile
            if not self._inside and self._collected:
                gc.enable()

    def renew(self) -> None:
        """In a forked process, without these threads."""
        if self._inside and self._collected:
            gc.enable()
        self._lock, self._inside = threading.Lock(), 0


_without = _WithoutCollection()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_without.renew)
