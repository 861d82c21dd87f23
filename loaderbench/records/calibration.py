"""A training step as a run measured it, by which another machine emulates its GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from loaderbench.records.words import Interval

CALIBRATION_FORMAT: Literal["loaderbench calibration 1"] = "loaderbench calibration 1"


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """Seconds that the step takes with batches of one size, without waiting for data: over `trials` processes."""

    batch_size: int
    step_s: Interval
    trials: int


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Step time by batch size, and the line through it: `fixed_s + s_per_sample * samples`.

    `device` is the GPU's name, or `cpu`; `model` and `precision` are those of `kind: model`, `None` of a step of the
    user's own.
    """

    format: Literal["loaderbench calibration 1"]
    run: str
    device: str
    model: str | None
    precision: str | None
    steps: tuple[StepTime, ...]
    fixed_s: float
    s_per_sample: float

    @property
    def samples_per_s(self) -> float:
        """The rate with the largest batch that was measured."""
        largest = max(step.batch_size for step in self.steps)
        return largest / (self.fixed_s + self.s_per_sample * largest)
