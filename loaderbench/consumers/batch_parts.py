"""The parts of a batch, and whether an image classifier can be trained on it."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import fields, is_dataclass
from typing import Any

import torch

from loaderbench.records.words import count

MOST_NAMED = 6  # keys of a dict that a message names


def changed(batch: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Return the batch with every tensor in it replaced by `change(tensor)`, at any depth."""
    if isinstance(batch, torch.Tensor):
        return change(batch)
    if type(batch) is dict:
        return {key: changed(part, change) for key, part in batch.items()}
    if isinstance(batch, MutableMapping):
        return _changed_mapping(batch, change)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(changed(part, change) for part in batch))
    if type(batch) in (list, tuple):
        return type(batch)(changed(part, change) for part in batch)
    return _changed_fields(batch, change) if is_dataclass(batch) and not isinstance(batch, type) else batch


def _changed_mapping(batch: MutableMapping[Any, Any], change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Change a library's mapping. A shallow copy may share its parts, so changing them would change the batch."""
    parts = {key: changed(part, change) for key, part in batch.items()}
    if not isinstance(batch, UserDict):  # copying a UserDict copies its parts
        with suppress(Exception):  # some objects cannot be copied, such as a lock
            return deepcopy(batch, {id(part): parts[key] for key, part in batch.items()})
    copied = copy(batch)
    copied.update(parts)
    return copied


def _changed_fields(batch: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Copy the dataclass and change its fields, without calling `__init__`, which may have side effects."""
    copied = copy(batch)
    for own in fields(batch):
        if hasattr(batch, own.name):
            object.__setattr__(copied, own.name, changed(getattr(batch, own.name), change))  # it may be frozen
    return copied


def parts_of(batch: Any) -> Sequence[Any] | None:
    """The parts of a batch in order, for a dataclass its fields; `None` for a batch without an order."""
    if isinstance(batch, list | tuple):
        return batch
    if is_dataclass(batch) and not isinstance(batch, type):
        return [getattr(batch, own.name, None) for own in fields(batch)]
    return None


def why_no_classifier(batch: Any) -> str:
    """Why an image classifier cannot be trained on such batches, as a clause; empty if it can.

    The first two parts of a batch (a list, a tuple or a dataclass) must be images of shape (N, 3, H, W), float or
    uint8, and N integer labels.
    """
    if isinstance(batch, Mapping):
        named = ", ".join(map(str, list(batch)[:MOST_NAMED]))
        return f"batches are {'dicts' if isinstance(batch, dict) else type(batch).__name__} with {named}"
    parts = parts_of(batch)
    if parts is None:
        return f"batches are of type {_described(batch)}, without labels"
    if len(parts) < 2:
        return f"batches have {count(len(parts), 'part')}, without labels"
    images, labels = parts[:2]
    if not _are_images(images):
        return f"the first part of a batch is {_described(images)}, not images of shape (N, 3, height, width)"
    if not _are_labels(labels, len(images)):
        return f"the second part of a batch is {_described(labels)}, not one integer label per image"
    return ""


def _are_images(part: Any) -> bool:
    shaped = isinstance(part, torch.Tensor) and part.ndim == 4 and part.shape[1] == 3
    return shaped and (part.is_floating_point() or part.dtype == torch.uint8)


def _are_labels(part: Any, count: int) -> bool:
    if not isinstance(part, torch.Tensor) or part.shape != (count,):
        return False
    return not (part.is_floating_point() or part.is_complex() or part.dtype == torch.bool)


def _described(part: Any) -> str:
    if not isinstance(part, torch.Tensor):
        return type(part).__name__
    dtype, shape = str(part.dtype).removeprefix("torch."), ", ".join(map(str, part.shape))
    return f"{'an' if dtype.startswith('int') else 'a'} {dtype} tensor of shape ({shape})"
