"""What a run is held to, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GateOutcome = Literal["passed", "failed", "inconclusive"]


@dataclass(frozen=True)
class Gate:
    """One expression of `--fail-if` or `--warn-if`.

    `limit` of a `change` is a share of the earlier samples/s, or a difference of shares (-0.05 is -5 %, 0.03 is
    +3 percentage points); of `below` and `above` it is the level itself, in samples/s or as a share.
    """

    text: str
    metric: str
    kind: Literal["change", "below", "above"]
    limit: float
    warns_only: bool = False


@dataclass(frozen=True)
class GateResult:
    """Whether the run passed; `said` is what was measured, with its interval, or why nothing can be said."""

    gate: Gate
    outcome: GateOutcome
    said: str
