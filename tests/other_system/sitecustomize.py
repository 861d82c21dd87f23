"""An interpreter as on other systems: no fcntl, resource, affinity, sessions, stopping of processes, or fork.

Python imports it at its start where this folder is in `PYTHONPATH`; each process of a run then is such an interpreter.
Libraries that are made for Linux still get what they import.
"""

import builtins
import multiprocessing.context
import os
import signal
from typing import Any

MODULES = ("fcntl", "resource")
FUNCTIONS = (
    "fork", "forkpty", "getsid", "killpg", "posix_fadvise", "sched_getaffinity", "sched_setaffinity", "setsid",
)  # fmt: skip
SIGNALS = ("SIGCONT", "SIGSTOP")

_import = builtins.__import__


def _import_what_there_is(name: str, scope: Any = None, *more: Any, **named: Any) -> Any:
    if name in MODULES and str((scope or {}).get("__name__")).startswith("loaderbench"):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return _import(name, scope, *more, **named)


builtins.__import__ = _import_what_there_is
for one in FUNCTIONS:
    if hasattr(os, one):
        delattr(os, one)
for one in SIGNALS:
    if hasattr(signal, one):
        delattr(signal, one)
multiprocessing.get_all_start_methods = lambda: ["spawn"]
found: Any = multiprocessing.context
found._default_context._default_context = found._concrete_contexts["spawn"]
