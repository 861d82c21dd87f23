"""References that keep nothing of the user's alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

Reference = Callable[[], Any]
"""Returns the object, or `None` if it is gone."""


def weak(thing: Any) -> Reference:
    """Of an object while it is alive; always `None` for one without weak references, such as a list."""
    return _weak_or(thing, None)


def kept_or_weak(thing: Any) -> Reference:
    """As `weak`, but an object without weak references is kept alive."""
    return _weak_or(thing, thing)


def _weak_or(thing: Any, otherwise: Any) -> Reference:
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: otherwise
