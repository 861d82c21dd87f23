"""Detects the training thread of a loop outside the main thread: that loop may only prefetch batches."""

from __future__ import annotations

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
