"""Whether two loaders give the same batches."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.records.words import Reasons


@dataclass(frozen=True, kw_only=True)
class Parity:
    """The first samples of a loader, compared with those of another over the same files in the same order.

    `refused` says what differs so much that their rates cannot be compared; empty where nothing does. `difference` is
    the mean absolute difference of values, as a share of their standard deviation. It is `None` where a random
    transform draws others each time.
    """

    loader: str
    against: str
    samples: int | None = None
    difference: float | None = None
    refused: str = ""
    not_measured: Reasons = field(default_factory=dict)
