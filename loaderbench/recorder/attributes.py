"""Reads attributes of the user's objects, which can be properties that raise."""

from __future__ import annotations

from typing import Any


def attribute_of(thing: Any, name: str, otherwise: Any = None) -> Any:
    """The attribute, or `otherwise` if there is none or reading it raises."""
    try:
        return getattr(thing, name)
    except Exception:  # from the user's code
        return otherwise
