"""What the calls of a model tell: the thread that trains, and whether a backward pass follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from loaderbench.tracing.clock import thread


class TrainingThread:
    """The thread that first calls a module with parameters after `look`; transforms have no parameters.

    Source: PyTorch, `register_module_forward_pre_hook`.
    """

    def __init__(self) -> None:
        self._found: int | None = None
        self._hook: Any = None

    def look(self) -> None:
        """Start looking for the thread, unless it is already known."""
        if self._found is None and self._hook is None:
            self._hook = register_module_forward_pre_hook(self._called)

    def is_another(self, of_loop: int | None) -> bool:
        """Whether the training thread is known, and is not the thread of this loop."""
        return self._found is not None and of_loop is not None and self._found != of_loop

    def end(self) -> None:
        """Stop looking."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def _called(self, module: torch.nn.Module, _: Any) -> None:
        if self._found is None and has_parameters(module):
            self._found = thread()
            self.end()


def has_parameters(module: torch.nn.Module) -> bool:
    """Whether the module is a model; without parameters, it is a transform or a loss."""
    try:
        return next(module.parameters(), None) is not None
    except Exception:  # the user's own method can raise
        return True


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
