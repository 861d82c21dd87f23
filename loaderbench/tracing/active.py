"""The tracer of each thread, where marked stages and hooks find it: in a worker always, else while a batch is made."""

from __future__ import annotations

import os
import threading

from loaderbench.tracing.tracer import Tracer


class _Local(threading.local):
    tracer: Tracer | None = None


local = _Local()


def tracer() -> Tracer | None:
    """The tracer of the calling thread; `None` where it makes no batch that is traced."""
    return local.tracer


def set_tracer(new: Tracer | None) -> Tracer | None:
    """Make it the calling thread's, and return the one before."""
    before, local.tracer = local.tracer, new
    return before


def clear() -> None:
    """Forget it: a process that was forked while a batch was made traces nothing."""
    local.tracer = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=clear)
