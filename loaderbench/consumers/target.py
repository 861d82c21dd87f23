"""The user's own training step."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from loaderbench.consumers.device_clock import StepWaitClock
from loaderbench.consumers.kind import Clock, Consumer, ConsumerKind, OptionProblem
from loaderbench.cuda_use import computing_device, other_kind_in_use, uses_cuda
from loaderbench.options import TargetName
from loaderbench.targets import call_target, find_target

if TYPE_CHECKING:
    from loaderbench.consumers.cuda import RunAhead


class TargetConsumer:
    """The user's step, called with each batch. On the host it is done when it returns, on a device later."""

    def __init__(self, step: Callable[[Any], Any]) -> None:
        self._step = step
        self._run_ahead: RunAhead | None = None
        self.wait_clock = StepWaitClock()
        self.note = ""

    def consume(self, batch: Any, samples: int) -> None:
        """Run the step."""
        self._step(batch)
        if not self.note and (kind := other_kind_in_use()) is not None:
            self.note = f"Data wait uses the host clock: {kind.upper()} steps have no timing events"
        if self._run_ahead is None and uses_cuda():
            from loaderbench.consumers.cuda import RunAhead

            self._run_ahead = RunAhead(computing_device())
        if self._run_ahead is not None:
            self._run_ahead.queued()


class TargetStep(ConsumerKind):
    """The user's code: a step that is called with each batch, or a function that returns a step."""

    asked_for_by: ClassVar[tuple[str, ...]] = ("target",)
    texts: ClassVar[tuple[str, ...]] = ("target",)

    target: TargetName | None = None
    args: dict[str, Any] = {}

    @property
    def may_use_device(self) -> bool:
        """True: the user's step may use a GPU."""
        return True

    def problems(self, *, chosen: bool) -> Iterator[OptionProblem]:
        """Report a missing target."""
        if chosen and self.target is None:
            yield OptionProblem(None, "kind: target needs target: package.module:name")

    def targets(self) -> list[str]:
        """The step's name."""
        return [self.target] if self.target else []

    def make(self, config: Mapping[str, Any], folder: Path, clock: Clock) -> Consumer:
        """Find the step. Raises `MissingError`, and `TypeError` if the target is not callable as a step."""
        return TargetConsumer(self._step(find_target(str(self.target), folder), config))

    def _step(self, target: Callable[..., Any], config: Mapping[str, Any]) -> Callable[[Any], Any]:
        """The target itself if it still needs a batch, otherwise the step that it returns.

        Parameters that are named like an axis receive its value.
        """
        parameters = inspect.signature(target).parameters.values()
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if any(p.default is p.empty and p.name not in {*self.args, *config} for p in positional):
            after_batch = [p for p in parameters if p is not positional[0] and p.kind is not p.POSITIONAL_ONLY]
            axes = {p.name: config[p.name] for p in after_batch if p.name in config}
            return partial(target, **{**self.args, **axes})
        step, _ = call_target(target, self.args, config)
        if not callable(step):
            raise TypeError(f"consumer.target must return a callable step, got {type(step).__name__}")
        return step  # type: ignore[no-any-return]
