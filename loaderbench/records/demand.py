"""The rate that an emulated GPU takes samples at, and who said so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class AssumedDemand:
    """Samples/s that an emulated GPU takes. The verdict depends on it, so a reader must know where it is from.

    `origin`: `default` where a suite says nothing, `suite` for `consumer.demand`, `accelerator` for a published rate of
    one GPU. Only the last has a GPU, a model, a precision, and the title and the web address of the source.
    """

    samples_per_s: float
    origin: Literal["default", "suite", "accelerator"]
    accelerator: str | None = None
    model: str | None = None
    precision: str | None = None
    source: str | None = None
    address: str | None = None
