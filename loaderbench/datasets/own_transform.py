"""The user's transform, from its name: used in a trial's process and pasted into programs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def own_transform(target: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return the user's transform: an instance, what a function without parameters returns, or the function itself."""
    try:
        parameters = inspect.signature(target).parameters.values()
    except ValueError:  # C functions may have no signature
        return target
    takes_an_image = any(p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters)
    return target if takes_an_image and not inspect.isclass(target) else target()
