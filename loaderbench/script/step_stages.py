"""Divides each step into transfer, forward, backward and optimizer, by torch's own global hooks.

`transfer` is from the batch to the first call of a module, once the script uses a GPU: copies to it, and what else the
loop queues there. It is left out if the step before called no module. `forward` is the outermost call of a module.
`backward` follows it, with the loss, until the optimizer begins or another module is called; without gradients there is
none. What torch compiles is left alone. Source: PyTorch,
`register_module_forward_pre_hook` and `register_optimizer_step_pre_hook`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from loaderbench.cuda_use import uses_cuda
from loaderbench.tracing.clock import StageClock, thread

if TYPE_CHECKING:
    from loaderbench.profiler.user_stages import HostAndDevice

FindStage = Callable[[str], "tuple[StageClock | HostAndDevice, int] | None"]
"""The clock of the loop whose step this is, and the stage's number on it; `None` outside of a recorded step."""


class StepStages:
    """The stages of the steps of one thread, from `begin` to `end`. `optimizes`: its latest step updated a model."""

    def __init__(self, find: FindStage) -> None:
        self._find = find
        self._thread = thread()
        self._depth = 0
        self._in_backward = self._in_transfer = False
        self._calls_model = self._called_model = False
        self._open: list[StageClock | HostAndDevice] = []
        self._hooks: list[Any] = []
        self.optimizes = self._optimized = False

    def begin(self) -> None:
        """Register the hooks, once. Torch's warning that compiled modules call them twice does not matter here."""
        if self._hooks:
            return
        warnings.filterwarnings("ignore", message=r"Using `torch\.compile\(module\)` when there are global hooks")
        self._hooks = [
            register_module_forward_pre_hook(self._forward_begins),
            register_module_forward_hook(self._forward_ended, always_call=True),
            register_optimizer_step_pre_hook(self._optimizer_begins),
            register_optimizer_step_post_hook(self._optimizer_ended),
        ]

    def end(self) -> None:
        """Remove the hooks."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def batch_came(self) -> None:
        """A step begins."""
        if self._calls_model and uses_cuda() and thread() == self._thread:
            self._in_transfer = True
            self._enter("transfer")

    def step_ended(self) -> None:
        """Close what is open: the next batch is asked for."""
        self._depth, self._in_backward, self._in_transfer = 0, False, False
        self.optimizes, self._optimized = self._optimized, False
        self._calls_model, self._called_model = self._called_model, False
        while self._open:
            self._leave()

    def _forward_begins(self, *_: Any) -> None:
        if torch.compiler.is_compiling() or thread() != self._thread:
            return
        self._depth += 1
        if self._depth == 1:
            self._called_model = True
            self._end_transfer()
            self._end_backward()
            self._enter("forward")

    def _forward_ended(self, *_: Any) -> None:
        if torch.compiler.is_compiling() or thread() != self._thread or not self._depth:
            return
        self._depth -= 1
        if not self._depth:
            self._leave()
            if torch.is_grad_enabled():
                self._enter("backward")
                self._in_backward = True

    def _optimizer_begins(self, *_: Any) -> None:
        if thread() == self._thread:
            self._optimized = True
            self._end_backward()
            self._enter("optimizer")

    def _optimizer_ended(self, *_: Any) -> None:
        if thread() == self._thread:
            self._leave()

    def _end_transfer(self) -> None:
        if self._in_transfer:
            self._in_transfer = False
            self._leave()

    def _end_backward(self) -> None:
        if self._in_backward:
            self._in_backward = False
            self._leave()

    def _enter(self, name: str) -> None:
        found = self._find(name)
        if found is not None:
            clock, stage = found
            clock.enter(stage)
            self._open.append(clock)

    def _leave(self) -> None:
        if self._open and (clock := self._open.pop()).ident:
            clock.leave()
