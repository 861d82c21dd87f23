"""Divides some steps into transfer, forward, backward and optimizer, with torch's own global hooks.

`transfer` lasts from the batch to the first call of a model, once the script uses a GPU: copies to the GPU, and other
work that the loop queues there. It is omitted if the previous divided step called no model; a model is a module with
parameters. `forward` is the outermost call of a model. `backward` follows it, including the loss, until the optimizer
begins, another model is called, or the closure of an optimizer returns. Without gradients, or in a loop that never goes
backward, there is no `backward`. In a loop that trains, a call without gradients is a stage of its own: an evaluation,
or a frozen model. Compiled code is left alone. Source: PyTorch, `register_module_forward_pre_hook` and
`register_optimizer_step_pre_hook`.

Code around the loader (`IteratorsAround`) is a separate stage. With a CUDA device, it is part of the step.

A global module hook puts every module call on torch's slow path, so it is registered only while a step is divided.
"""

from __future__ import annotations

import gc
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial, wraps
from math import inf
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Protocol, cast

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from loaderbench.cuda_use import uses_cuda
from loaderbench.profiler.user_stages import AROUND
from loaderbench.records.words import WITHOUT_GRADIENTS
from loaderbench.script.iterators_around import IteratorsAround
from loaderbench.script.model_calls import TrainingThread, has_parameters, watch_backward
from loaderbench.tracing.clock import StageClock, thread
from loaderbench.tracing.loop_lines import LineTimes, LoopLineClock, driver_of

if TYPE_CHECKING:
    from types import FrameType

    from loaderbench.profiler.user_stages import HostAndDevice


_OF_HOOKS = re.compile(r"Using `torch\.compile\(module\)` when there are global hooks", re.IGNORECASE)
_FUNCTIONS = (FunctionType, MethodType, partial)
_IGNORED = ("ignore", _OF_HOOKS, Warning, None, 0)
"""A warnings filter in the format of `warnings.filterwarnings`."""

IN_A_PIPELINE = "the parts of a step overlap with those of other ranks: the script trains in a pipeline"
_PIPELINES = ("torch.distributed.pipelining.", "deepspeed.runtime.pipe.")


class Loop(Protocol):
    """The loop whose step is divided.

    `calls_model`: its latest divided step called a model. `trains`: a divided step called an optimizer.
    `goes_backward`: a backward pass followed the call of a model, in any step so far; `None` before the first call.
    """

    calls_model: bool
    trains: bool
    goes_backward: bool | None

    @property
    def lines(self) -> LineTimes:
        """The lines of the loop outside of the timed parts of a step."""
        ...

    def stage(self, name: str) -> tuple[StageClock | HostAndDevice, int] | None:
        """The step's clock, and the stage's number on that clock; `None` outside of a recorded step."""
        ...

    def step_divided(self, took_s: float | None, around: str) -> None:
        """Record a divided step of `took_s` seconds; `None` if it does not count. `around` is a place, or empty."""
        ...


class StepStages:
    """The stages of steps, from `begin` to `end`. Only one step is divided at a time, in any thread.

    `loop` is the loop whose step is being divided. `updates` counts optimizer steps; it includes all of them only if
    they are watched in every step, which costs some microseconds each. `training_thread` is detected once a thread
    other than the main thread takes batches.
    """

    def __init__(self, *, watches_optimizers: bool) -> None:
        self._watches_optimizers = watches_optimizers
        self.loop: Loop | None = None
        self.updates = 0
        self._thread = thread()
        self._choosing = threading.Lock()
        self.training_thread = TrainingThread()
        self.line_clock = LoopLineClock()
        self._depth = 0
        self._called_model = self._is_in_backward = False
        self._awaits_backward = self._had_gradients = False
        self._open: list[tuple[str, StageClock | HostAndDevice | None]] = []  # the innermost stage is last
        self._hooks_of_all_steps: list[Any] = []
        self._hooks_of_this_step: list[Any] = []
        self._around = IteratorsAround(self._around_begins, self._around_ended, self._leave_if_overdue)
        self._compiled: bool | None = None  # in a way that hooks affect
        self._is_pipelined = False  # as a stage of several ranks: a forward pass can wait for other ranks
        self._graphs = 0
        self._began_s, self._longest_s = 0.0, inf

    @property
    def why_not_divided(self) -> str:
        """Why none of the loop's steps is divided into stages."""
        if self._is_pipelined:
            return IN_A_PIPELINE
        if self._compiled:
            return "torch compiled a model during a divided step, and hooks may make it recompile"
        return "no divided step called a module with parameters or an optimizer of torch"

    def begin(self) -> None:
        """Register the hooks for all steps, once."""
        if self._watches_optimizers and not self._hooks_of_all_steps:
            self._hooks_of_all_steps += self._register_optimizer_hooks()

    def end(self) -> None:
        """Remove all hooks. A step that is being divided does not count."""
        self.leave_step(None)
        self.line_clock.stop()
        _remove(self._hooks_of_this_step)
        _remove(self._hooks_of_all_steps)
        _set_warning_filter(torch_warning=False)
        self.training_thread.end()

    def divide(self, loop: Loop, asks: FrameType | None, longest_s: float = inf) -> None:
        """Divide the step that begins now. `asks` is the frame that asked for its batch.

        If `asks` is `None`, code around the loader is not timed, and no lines are found. A step longer than `longest_s`
        was the last of a loop that was left while its iterator stays alive. Torch warns that compiled modules call
        hooks twice; that is harmless here, so the warning is ignored.
        """
        if threading.current_thread() is not threading.main_thread():
            self.training_thread.look()
        if not self._choosing.acquire(blocking=False):
            return  # another thread is starting to divide a step
        try:
            if not self._may_be_divided():
                return
            self.loop, self._graphs = loop, _graphs_compiled()
            self._awaits_backward, self._had_gradients = loop.goes_backward is not False, False
        finally:
            self._choosing.release()
        _set_warning_filter(torch_warning=True)
        self._hooks_of_this_step = [
            register_module_forward_pre_hook(self._forward_begins),
            register_module_forward_hook(self._forward_ended, always_call=True),
            *([] if self._watches_optimizers else self._register_optimizer_hooks()),
        ]
        self._began_s, self._longest_s = time.perf_counter(), longest_s
        if asks is not None:
            self.line_clock.begin(loop.lines, driver_of(asks))
        if loop.calls_model and uses_cuda():
            self._enter("transfer")
        if asks is not None:
            self._around.begin(asks)

    def _may_be_divided(self) -> bool:
        """Whether a step of this thread can be divided: not while another is, unless the other's thread has ended."""
        if self.loop is not None and not _is_alive(self._thread):
            self._end_step(counts=False)
        if self.loop is not None or self._is_pipelined or self.training_thread.is_another(thread()):
            return False
        self._thread = thread()
        return not self._is_compiled_in_place()

    def leave_step(self, by: Loop | None) -> None:
        """End the divided step. It counts if its own loop asks for the next batch and torch compiled nothing."""
        loop = self.loop
        if loop is None or thread() != self._thread:
            return
        if by is not None and by is not loop and not self._called_model:
            self._end("transfer")
            return  # the step uses batches of several loaders
        self._end_step(counts=by is loop)

    def _end_step(self, *, counts: bool) -> None:
        """End the step. It does not count after an exception in its optimizer step, or an unexpected backward pass."""
        loop = cast("Loop", self.loop)
        self.line_clock.end()
        took_s = time.perf_counter() - self._began_s
        around = self._around.place
        is_known = self._around.end(next_is_asked_for=counts) and not self._is_open("optimizer")
        counts = counts and is_known and self._is_as_expected(loop)
        while self._open:
            self._leave()
        _remove(self._hooks_of_this_step)
        loop.calls_model, self._called_model, self._depth = self._called_model, False, 0
        if _graphs_compiled() != self._graphs:
            self._compiled = True
        self.loop = None
        loop.step_divided(took_s if counts and not self._compiled else None, around)

    def _is_as_expected(self, loop: Loop) -> bool:
        """Whether the stage `backward` was timed if and only if the loop goes backward."""
        if not self._had_gradients:
            return True
        loop.goes_backward = bool(loop.goes_backward)
        return loop.goes_backward == self._awaits_backward

    def _leave_if_overdue(self) -> bool:
        """End a step that takes too long: its hooks would slow down the script for good. Returns whether it did."""
        is_overdue = time.perf_counter() - self._began_s > self._longest_s
        if is_overdue:
            self.leave_step(None)
        return is_overdue

    def _register_optimizer_hooks(self) -> list[Any]:
        return [
            register_optimizer_step_pre_hook(self._optimizer_begins),
            register_optimizer_step_post_hook(self._optimizer_ended),
        ]

    def _is_compiled_in_place(self) -> bool:
        """Whether a hook would make torch recompile, as after `module.compile()`. Checked once."""
        if self._compiled is None and _graphs_compiled():
            self._compiled = any(
                issubclass(type(one), torch.nn.Module) and one._compiled_call_impl is not None
                for one in gc.get_objects()
            )
        return bool(self._compiled)

    def _forward_begins(self, module: torch.nn.Module, _: Any) -> None:
        if torch.compiler.is_compiling() or thread() != self._thread:
            return
        if not self._depth and (not has_parameters(module) or self._leave_if_overdue()):
            return
        if not self._called_model and _is_called_by_a_schedule(sys._getframe(1)):
            self._is_pipelined = True
            self.leave_step(None)
            return
        self._depth += 1
        if self._depth == 1:
            self._called_model = True
            self._around.model_called()
            self._end("transfer")
            self._is_in_backward = self._is_open("backward")
            self._end("backward")
            name = self._name_of_forward()
            self._enter(name)
            if name == WITHOUT_GRADIENTS:
                self.line_clock.enter_call()

    def _forward_ended(self, _module: torch.nn.Module, _args: Any, output: Any) -> None:
        if torch.compiler.is_compiling() or thread() != self._thread or not self._depth:
            return
        self._depth -= 1
        if not self._depth:
            self._end("forward")
            self._end(WITHOUT_GRADIENTS)
            self.line_clock.leave_call()
            if torch.is_grad_enabled():
                self._await_backward(output)
            elif self._is_in_backward:
                self._enter("backward")

    def _await_backward(self, output: Any) -> None:
        """Enter the stage `backward`, unless earlier steps of the loop had none. Then only look for one."""
        loop = cast("Loop", self.loop)

        def note() -> None:
            loop.goes_backward = True

        if not loop.goes_backward:
            watch_backward(output, note)
        self._had_gradients = True
        if self._awaits_backward:
            self._enter("backward")

    def _name_of_forward(self) -> str:
        trains = self.loop is not None and self.loop.trains
        return WITHOUT_GRADIENTS if trains and not torch.is_grad_enabled() else "forward"

    def _optimizer_begins(self, _: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Begin the optimizer stage.

        Returns changed arguments if one is a closure, because only the closure's own code knows when it returns.
        """
        if thread() != self._thread:
            return None
        self.updates += 1
        if self.loop is None:
            return None
        self.loop.trains = self.loop.goes_backward = True
        self._around.model_called()
        self._end("backward")
        self._enter("optimizer")
        if isinstance(named.get("closure"), _FUNCTIONS):
            return args, {**named, "closure": self._wrapped_closure(named["closure"])}
        if len(args) > 1 and isinstance(args[1], _FUNCTIONS):  # a model is callable, too
            return (args[0], self._wrapped_closure(args[1]), *args[2:]), named
        return None

    def _wrapped_closure(self, closure: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap an optimizer's closure, which calls the model: what the optimizer does after it is not `backward`."""

        @wraps(closure)
        def follow(*args: Any, **named: Any) -> Any:
            try:
                return closure(*args, **named)
            finally:
                if thread() == self._thread:
                    self._end("backward")

        return follow

    def _optimizer_ended(self, *_: Any) -> None:
        if self.loop is not None and thread() == self._thread:
            self._end("optimizer")

    def _around_begins(self) -> None:
        self._end("backward")
        self._enter(AROUND)

    def _around_ended(self) -> None:
        self._end(AROUND)

    def _enter(self, name: str) -> None:
        found = self.loop and self.loop.stage(name)
        clock = None
        if found:
            clock, stage = found
            clock.enter(stage)
        self._open.append((name, clock))
        if name != WITHOUT_GRADIENTS:
            self.line_clock.pause()

    def _is_open(self, name: str) -> bool:
        return any(name == one for one, _ in self._open)

    def _end(self, name: str) -> None:
        """End the innermost stage of this name and the stages within it, if there is one."""
        if self._is_open(name):
            while self._leave() != name:
                pass

    def _leave(self) -> str:
        name, clock = self._open.pop()
        if all(one == WITHOUT_GRADIENTS for one, _ in self._open):
            self.line_clock.resume()
        if clock is not None and clock.ident:
            clock.leave()
        return name


def _is_called_by_a_schedule(frame: FrameType | None) -> bool:
    """Whether one of the frames, from the innermost one out, is that of a schedule for pipeline parallelism."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(_PIPELINES):
            return True
        frame = frame.f_back
    return False


def _is_alive(ident: int) -> bool:
    """Whether this is the id of a running thread."""
    return any(one.ident == ident for one in threading.enumerate())


def _set_warning_filter(*, torch_warning: bool) -> None:
    """Add or remove the warnings filter directly: the public functions would make Python repeat past warnings."""
    filters: list[Any] = cast("list[Any]", warnings.filters)
    if torch_warning and _IGNORED not in filters:
        filters.insert(0, _IGNORED)
    elif not torch_warning and _IGNORED in filters:
        filters.remove(_IGNORED)


def _remove(hooks: list[Any]) -> None:
    for hook in hooks:
        hook.remove()
    hooks.clear()


def _graphs_compiled() -> int:
    """The number of graphs that torch has compiled in this process so far."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo.counters["stats"]["unique_graphs"] if dynamo else 0
