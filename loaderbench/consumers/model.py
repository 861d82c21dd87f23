"""A training step of a torchvision classifier, on the GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from loaderbench.consumers.kind import Clock, Consumer, ConsumerKind
from loaderbench.consumers.training_rates import DEFAULT_MODEL

_PREFETCH = "Copy the next batch during the step, on a separate stream; with pinned memory, that hides the copy."


class Model(ConsumerKind):
    """Trains `model` on what it gets."""

    who: ClassVar[str] = "GPU"
    auto: ClassVar[Literal["accelerator", "host"] | None] = "accelerator"
    needs_accelerator: ClassVar[bool] = True
    may_use_device: ClassVar[bool] = True
    texts: ClassVar[tuple[str, ...]] = ("model",)

    model: str = DEFAULT_MODEL
    prefetch_stream: Annotated[bool, Field(description=_PREFETCH)] = False

    def make(self, config: Mapping[str, Any], folder: Path, clock: Clock) -> Consumer:
        """Make the step."""
        from loaderbench.consumers.training_step import TrainingStep

        return TrainingStep(self.model, prefetch_stream=self.prefetch_stream)

    def make_for_any_batch(self, config: Mapping[str, Any], folder: Path, clock: Clock, rate: float) -> Consumer:
        """Make the step, and an emulated GPU for batches that it cannot take: which it is, the first batch decides."""
        from loaderbench.consumers.by_first_batch import ByFirstBatch
        from loaderbench.consumers.emulated import EmulatedAccelerator

        return ByFirstBatch(self.make(config, folder, clock), EmulatedAccelerator(rate, clock), "cuda", rate)
