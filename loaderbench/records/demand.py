"""The rate at which an emulated GPU takes samples, its origin, and the calibration that measures a training step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from loaderbench.records.words import Interval

CALIBRATION_FORMAT: Literal["loaderbench calibration 1"] = "loaderbench calibration 1"


@dataclass(frozen=True, kw_only=True)
class AssumedDemand:
    """The target: samples/s that an emulated GPU takes, with the origin of this number. The verdict depends on it.

    `origin` is `default` if the suite sets no target, `suite` for `consumer.demand`, and `script` for the rate of a
    script's step. It is `accelerator` for a published rate of one GPU, and `calibration` for a measured rate. The last
    two have a GPU, a model and a precision. Their `source` is a publication with its web `address`, or the name of a
    run. A calibration also has its step time: a batch takes `fixed_s + s_per_sample * samples`, and the rate is the one
    with the largest batch.
    """

    samples_per_s: float
    origin: Literal["default", "suite", "script", "accelerator", "calibration"]
    accelerator: str | None = None
    model: str | None = None
    precision: str | None = None
    source: str | None = None
    address: str | None = None
    fixed_s: float | None = None
    s_per_sample: float | None = None

    def rate_at(self, batch_size: int | None) -> float:
        """Samples/s that the emulated GPU takes in batches of this size."""
        if self.fixed_s is None or self.s_per_sample is None or not batch_size:
            return self.samples_per_s
        return batch_size / (self.fixed_s + self.s_per_sample * batch_size)


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """Seconds per training step with batches of one size, without data wait, over `trials` processes."""

    batch_size: int
    step_s: Interval
    trials: int


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Step time by batch size, and the fitted line `fixed_s + s_per_sample * samples`.

    `device` is the GPU's name, or `cpu`. `model` and `precision` are set for `kind: model`, and `None` for a user's own
    training step.
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
        """The rate with the largest measured batch."""
        largest = max(step.batch_size for step in self.steps)
        return largest / (self.fixed_s + self.s_per_sample * largest)
