"""Imported only by the fork server: ignore Ctrl-C, preload torch, and keep normal exits quiet.

This module lies outside `runner`, which takes a second to import, during which a run may be killed.
"""

import atexit
import os
import pickle
import signal
import sys
from types import TracebackType

from loaderbench.child_processes import ended_with_parent, forget_same_path

# SIGINT was blocked when the server started. Pending signals are dropped, and forked processes ignore SIGINT too.
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

forget_same_path()

with ended_with_parent():  # the server checks for its parent only after all imports
    import loaderbench.runner.preload  # noqa: F401


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report an exception before a process has its target, unless the parent was interrupted."""
    if not issubclass(kind, (EOFError, pickle.UnpicklingError)):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _report

# The server only ever forks. Without this, compiler bindings bundled with torch print every object that is still alive
# at interpreter shutdown to stderr.
atexit.register(os._exit, 0)
