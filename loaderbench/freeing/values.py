"""Copies of a stage's results, and whether a result was changed afterwards."""

from __future__ import annotations

import sys
from copy import deepcopy
from typing import Any

_IMMUTABLE = (bytes, str, int, float, bool, type(None))


def copy_of(value: Any) -> Any:
    """A copy that shares no memory with the value; values that cannot be copied are returned unchanged."""
    if type(value) is dict:
        return {key: copy_of(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(copy_of(part) for part in value)
    if isinstance(value, _IMMUTABLE):
        return value
    return _copy_of_pixels(value)


def _copy_of_pixels(value: Any) -> Any:
    torch, image = sys.modules.get("torch"), sys.modules.get("PIL.Image")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().clone()
    if image is not None and isinstance(value, image.Image):
        copied = value.copy()
        copied.format = value.format
        return copied
    try:
        return deepcopy(value)
    except Exception:  # a lock, a generator, a handle of some library
        return value


def renewed(value: Any) -> Any:
    """The same pixels in new containers, because a later stage may change a list or a dict."""
    if type(value) is dict:
        return {key: renewed(part) for key, part in value.items()}
    return type(value)(map(renewed, value)) if type(value) in (list, tuple) else value


def unshared(value: Any) -> Any:
    """The tensors of a batch over the same memory, each with a new storage.

    Sending a tensor moves its storage into shared memory, which costs nothing the second time. A new storage costs the
    same each time. A tensor already in shared memory is returned unchanged.
    """
    import torch
    from torch.utils.dlpack import from_dlpack

    from loaderbench.consumers.batch_parts import changed

    def fresh(part: torch.Tensor) -> torch.Tensor:
        plain = type(part) is torch.Tensor and part.layout is torch.strided and not part.requires_grad
        return from_dlpack(part) if plain and not part.is_shared() else part  # type: ignore[no-untyped-call]

    return changed(value, fresh)


def is_same(one: Any, other: Any) -> bool:
    """Whether two values have the same pixels; values that cannot be compared count as the same.

    The copy of an image that Pillow opened from a file is of a plain class.
    """
    if type(one) is not type(other) and not (_is_image(one) and _is_image(other)):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    return _are_same_pixels(one, other)


def _is_image(value: Any) -> bool:
    image = sys.modules.get("PIL.Image")
    return image is not None and isinstance(value, image.Image)


def _are_same_pixels(one: Any, other: Any) -> bool:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(one, torch.Tensor):
        return bool(torch.equal(one, other))
    if numpy is not None and isinstance(one, numpy.ndarray):
        return bool(numpy.array_equal(one, other))
    return _are_same_images(one, other) if _is_image(one) else True


def _are_same_images(one: Any, other: Any) -> bool:
    try:
        return bool(one.mode == other.mode and one.size == other.size and one.tobytes() == other.tobytes())
    except ValueError:  # it was closed
        return False
