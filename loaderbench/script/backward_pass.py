"""Notices whether a backward pass follows the call of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Any

import torch

_MOST_PARTS = 100  # of an output


def watch_backward(output: Any, note: Callable[[], None]) -> None:
    """Call `note` when a backward pass reaches one of the tensors in a model's output, in any thread."""

    def reached(_: Any) -> None:
        note()

    with suppress(Exception):  # the output can be an object of a user's class
        for tensor in _tensors_in(output):
            if tensor.grad_fn is not None:
                tensor.grad_fn.register_prehook(reached)


def _tensors_in(output: Any) -> Iterator[torch.Tensor]:
    """The tensors among the first parts of an output."""
    waiting = [output]
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        part = waiting.pop()
        if issubclass(type(part), torch.Tensor):
            yield part
        elif isinstance(part, Mapping):
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part
        elif is_dataclass(part):
            waiting += vars(part).values()
