"""Reads the variables of a frame of the script, and leaves nothing behind."""

from __future__ import annotations

import sys
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import Any

_OF_NOBODY_ELSE = 3
"""References to the dictionary: the frame's, ours, and the one by which it is counted."""


def locals_of(frame: FrameType) -> dict[str, Any]:
    """A copy of the variables.

    Before Python 3.13, asking a function's frame for them leaves a dictionary in the frame, which keeps all of them
    alive until the function returns. They are taken out of it, unless the function itself holds it. What `exec` has put
    there stays.
    """
    found = frame.f_locals
    copied = dict(found)
    if (
        sys.version_info < (3, 13)
        and frame.f_code.co_flags & CO_OPTIMIZED
        and sys.getrefcount(found) <= _OF_NOBODY_ELSE
    ):
        code = frame.f_code
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            found.pop(name, None)
    return copied
