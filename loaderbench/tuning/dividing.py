"""Whether the workers of a loader share its samples, or each of them gives all."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

from loaderbench.code_places import is_library

_NEUTRAL = ("torch", "typing", "collections", "abc", "builtins")
_ASKED = ("get_worker_info", "worker_info")


def each_worker_gives_all(loader: Any) -> bool:
    """Whether more workers may give every sample several times: torch leaves it to an `IterableDataset` to divide them.

    One of a library, one that asks which worker it is in, and a loader with a `worker_init_fn` are taken to divide. So
    is one that has several workers already.
    """
    from torch.utils.data import IterableDataset

    dataset = loader.dataset
    if not isinstance(dataset, IterableDataset) or loader.worker_init_fn is not None or loader.num_workers > 1:
        return False
    return not any(_divides(kind) for kind in type(dataset).__mro__ if kind is not IterableDataset)


def _divides(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None) or ""
    if kind.__module__.partition(".")[0] in _NEUTRAL:
        return False
    if file and is_library(file):
        return True
    return any(name in vars(module or kind) for name in _ASKED) or any(name in _ASKED for name in _names(kind))


def _names(kind: type) -> Iterator[str]:
    """The names that the methods of a class use."""
    waiting = [found.__code__ for found in vars(kind).values() if inspect.isfunction(found)]
    while waiting:
        code = waiting.pop()
        yield from code.co_names
        waiting += [part for part in code.co_consts if isinstance(part, CodeType)]
