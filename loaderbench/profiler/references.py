"""References that do not keep the user's objects alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

Reference = Callable[[], Any]
"""Returns the object, or `None` once it is freed."""


def weak(thing: Any) -> Reference:
    """A weak reference; always `None` for an object without weak references, such as a list."""
    return _weak_or(thing, None)


def kept_or_weak(thing: Any) -> Reference:
    """A weak reference, or a strong one to an object without weak references."""
    return _weak_or(thing, thing)


def _weak_or(thing: Any, otherwise: Any) -> Reference:
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: otherwise
