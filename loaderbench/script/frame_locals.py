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
    """A copy of the variables. Before Python 3.13, it is empty for a function that calls `locals()` or `vars()`.

    In those versions, a frame has a single dictionary of its variables, and reading it updates it. If the function kept
    that dictionary, it would change. Otherwise the variables are removed from it after the copy, since they would stay
    alive until the function returns. What `exec` has put there stays.
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
    """Whether the function uses `locals` or `vars` as a global name, not as an attribute."""
    return not _ASK_FOR_THEM.isdisjoint(code.co_names) and any(
        step.opname == "LOAD_GLOBAL" and step.argval in _ASK_FOR_THEM for step in dis.get_instructions(code)
    )
