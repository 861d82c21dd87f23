"""The rate that an emulated GPU takes samples at: who said so, and the training step that a run measured for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from loaderbench.records.words import Interval

CALIBRATION_FORMAT: Literal["loaderbench calibration 1"] = "loaderbench calibration 1"


@dataclass(frozen=True, kw_only=True)
class AssumedDemand:
    """The target: samples/s that an emulated GPU takes, and where that number is from. The verdict depends on it.

    `origin`: `default` if the suite says nothing, `suite` for `consumer.demand`, `accelerator` for a published rate of
    one GPU, `calibration` for a measured one. The last two have a GPU, a model and a precision. Their source is a
    publication with its web address, or the name of a run. A calibration also has its step time: a batch takes
    `fixed_s + s_per_sample * samples`, and the rate is that of the largest batch.
    """

    samples_per_s: float
    origin: Literal["default", "suite", "accelerator", "calibration"]
    accelerator: str | None = None
    model: str | None = None
    precision: str | None = None
    source: str | None = None
    address: str | None = None
    fixed_s: float | None = None
    s_per_sample: float | None = None

    def rate_at(self, batch_size: int | None) -> float:
        """Samples/s that batches of this size are taken at."""
        if self.fixed_s is None or self.s_per_sample is None or not batch_size:
            return self.samples_per_s
        return batch_size / (self.fixed_s + self.s_per_sample * batch_size)


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
