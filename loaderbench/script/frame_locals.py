"""Reads the variables of a frame of the script, and leaves nothing behind."""

from __future__ import annotations

import dis
import functools
import sys
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType
from typing import Any

_ASK_FOR_THEM = {"locals", "vars"}

_OF_NOBODY_ELSE = 3
"""References to the dictionary: the frame's, ours, and the one by which it is counted."""


def locals_of(frame: FrameType) -> dict[str, Any]:
    """A copy of the variables; of a function that may ask for them itself, nothing before Python 3.13.

    Until then, a function's frame has one dictionary of them, which asking brings up to date: one that the function
    keeps would change. If nobody else holds it, they are taken out of it, or they would stay alive until the function
    returns. What `exec` has put there stays.
    """
    code = frame.f_code
    shared = sys.version_info < (3, 13) and code.co_flags & CO_OPTIMIZED
    if shared and _asks_for_them(code):
        return {}
    found = frame.f_locals
    copied = dict(found)
    if shared and sys.getrefcount(found) <= _OF_NOBODY_ELSE:
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            found.pop(name, None)
    return copied


@functools.lru_cache(maxsize=1024)
def _asks_for_them(code: CodeType) -> bool:
    """Whether the function names one of the built-in functions; an attribute of the name does not count."""
    return not _ASK_FOR_THEM.isdisjoint(code.co_names) and any(
        step.opname == "LOAD_GLOBAL" and step.argval in _ASK_FOR_THEM for step in dis.get_instructions(code)
    )
