"""The current tracer of each thread, looked up by marked stages and hooks.

A worker always has one. In the user's process, a thread has one only while it loads a batch.
"""

from __future__ import annotations

import os
import threading

from loaderbench.tracing.tracer import Tracer


class _Local(threading.local):
    tracer: Tracer | None = None


local = _Local()


def tracer() -> Tracer | None:
    """The calling thread's tracer; `None` unless the thread is loading a traced batch."""
    return local.tracer


def set_tracer(new: Tracer | None) -> Tracer | None:
    """Set the calling thread's tracer, and return the previous one."""
    before, local.tracer = local.tracer, new
    return before


def clear() -> None:
    """Reset the tracer: a process forked while a batch was being loaded traces nothing."""
    local.tracer = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=clear)
