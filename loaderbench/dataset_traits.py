"""What a dataset is or holds that decides which fixes fit it, found without calling it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sized
from typing import Any

import numpy as np
import torch

LONG = 100_000  # objects, some 10 MB of them: below this nobody misses the memory

_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator, torch.Generator)


def traits_of(dataset: Any) -> dict[str, str]:
    """`random_state` and `object_list`, each with the attribute that holds one; never raises.

    `stream` and `loader` have the class of a dataset whose samples have no numbers, and of a finished `DataLoader`.
    """
    found: dict[str, str] = {}
    if isinstance(dataset, torch.utils.data.DataLoader):
        return {**traits_of(dataset.dataset), "loader": type(dataset).__name__}
    dataset = _own(dataset).get("dataset", dataset)
    if isinstance(dataset, torch.utils.data.IterableDataset):
        found["stream"] = type(dataset).__name__
    for name, value in _attributes(dataset):
        if isinstance(value, _GENERATORS):
            found.setdefault("random_state", f"{name}: {type(value).__name__}")
        elif _is_long_list(value):
            found.setdefault("object_list", f"{name}: {len(value):,} objects")
    return found


def _attributes(dataset: Any) -> Iterator[tuple[str, Any]]:
    """Of the dataset, of its transform and of the steps of that one."""
    transform = _own(dataset).get("transform")
    steps = _own(transform).get("transforms")
    for holder in (dataset, transform, *(steps if isinstance(steps, list) else [])):
        yield from _own(holder).items()


def _own(holder: Any) -> dict[str, Any]:
    try:
        return dict(vars(holder))
    except Exception:  # of a type without attributes, or of one that refuses
        return {}


def _is_long_list(value: Any) -> bool:
    """Builtin containers alone: others know how to share what they hold."""
    return type(value) in (list, tuple, dict) and isinstance(value, Sized) and len(value) >= LONG
