"""Imported by the fork server only: ignores Ctrl-C, preloads torch, and keeps normal endings quiet."""

import atexit
import ctypes
import os
import pickle
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


@contextmanager
def ended_with_parent() -> Iterator[None]:
    """Let Linux kill this process with its parent: the server looks for that only once it has imported everything.

    A thread could not: loading torch's libraries holds the GIL for seconds. Source: prctl(2). What is forked does not
    inherit it. Elsewhere the server ends after its imports.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    yield
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, 0)


# Blocked since the server was started. What came meanwhile is dropped, and all that it forks ignores it too.
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

with ended_with_parent():
    import loaderbench.runner.preload  # noqa: F401


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report what ends a process before it has its target; not that the one who started it was interrupted."""
    if not issubclass(kind, (EOFError, pickle.UnpicklingError)):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _report

# The server only ever forks. Without this, bindings of compilers that torch brings along report, on its standard error,
# every object that is still alive when the interpreter is taken down.
atexit.register(os._exit, 0)
