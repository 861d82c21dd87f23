"""Imported by the fork server only: ignores Ctrl-C, preloads torch, and keeps normal endings quiet.

It lies outside of `runner`, which takes a second to import: a run may be killed meanwhile.
"""

import atexit
import os
import pickle
import signal
import sys
from types import TracebackType

from loaderbench.parent_death import ended_with_parent

# Blocked since the server was started. What came meanwhile is dropped, and all that it forks ignores it too.
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

with ended_with_parent():  # the server looks for its parent only once it has imported everything
    import loaderbench.runner.preload  # noqa: F401


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report what ends a process before it has its target; not that the one who started it was interrupted."""
    if not issubclass(kind, (EOFError, pickle.UnpicklingError)):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _report

# The server only ever forks. Without this, bindings of compilers that torch brings along report, on its standard error,
# every object that is still alive when the interpreter is taken down.
atexit.register(os._exit, 0)
