"""How Python processes are started: they find their modules where this process does, and end with it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SAFE_PATH = "PYTHONSAFEPATH"  # from Python 3.11 on
_OURS = "loaderbench"


@contextmanager
def same_path() -> Iterator[None]:
    """Let Python processes started in the block skip the working directory, unless this process looks there too."""
    if _SAFE_PATH in os.environ or _looks_in_working_directory():
        yield
        return
    os.environ[_SAFE_PATH] = _OURS
    try:
        yield
    finally:
        os.environ.pop(_SAFE_PATH, None)


def forget_same_path() -> None:
    """In a process started in the block: let the Python programs that it starts look where they always do."""
    if os.environ.get(_SAFE_PATH) == _OURS:
        del os.environ[_SAFE_PATH]


def _looks_in_working_directory() -> bool:
    try:
        here = Path.cwd()
        return any(not entry or Path(entry).resolve() == here for entry in sys.path)
    except OSError:  # the working directory was removed
        return False


PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>
_PARENT = "LOADERBENCH_PARENT"


@contextmanager
def named_parent() -> Iterator[None]:
    """Pass this process's PID to children started in the block."""
    os.environ[_PARENT] = str(os.getpid())
    try:
        yield
    finally:
        os.environ.pop(_PARENT, None)


def die_with_parent() -> None:
    """In a forked child: make Linux kill it, even after an exec, when the thread that forked it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextmanager
def ended_with_parent() -> Iterator[None]:
    """Make Linux kill this process with its parent; exit if the parent has already died.

    A thread could not watch for the parent's death: loading torch's libraries holds the GIL for seconds. Forked
    processes do not inherit the setting. Only Linux sends the signal, when the parent's thread that started this
    process ends. Source: prctl(2).
    """
    parent = os.environ.pop(_PARENT, None)
    prctl = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != int(parent):  # the parent died before prctl, which sends no signal
        os._exit(0)
    yield
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, 0)
