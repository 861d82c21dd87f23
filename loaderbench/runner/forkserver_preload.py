"""Imported by the fork server only: ignores Ctrl-C, preloads torch, and keeps normal endings quiet."""

import atexit
import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

LOOK_S = 0.1


@contextmanager
def ended_with_parent() -> Iterator[None]:
    """End this process when its parent is gone: the server looks for that only once it has imported everything.

    The thread that looks has ended when the block is left: what is forked then has one thread.
    """
    parent, done = os.getppid(), threading.Event()

    def look() -> None:
        while not done.wait(LOOK_S):
            if os.getppid() != parent:
                os._exit(0)

    thread = threading.Thread(target=look, name="loaderbench-parent-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


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
