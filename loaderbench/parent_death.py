"""Kill a child process when its parent dies, even during the child's startup.

The parent starts the child inside `named_parent`, and the child runs its slow imports inside `ended_with_parent`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

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
