"""References that keep nothing of the user's alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

Reference = Callable[[], Any]
"""Returns the object, or `None` if it is gone."""


def weak(thing: Any) -> Reference:
    """Of an object while it is alive; always `None` for one without weak references, such as a list."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: None


def kept_or_weak(thing: Any) -> Reference:
    """As `weak`, but an object without weak references is kept alive."""
    return weak(thing) if _has_weak(thing) else lambda: thing


def _has_weak(thing: Any) -> bool:
    try:
        weakref.ref(thing)
    except TypeError:
        return False
    return True
