"""What every strategy answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from loaderbench.plan import PlannedTrial
from loaderbench.records import Trial


class Strategy(Protocol):
    """Proposes the trials of the next round, given all that were measured."""

    def next_round(self, done: Sequence[Trial]) -> Sequence[PlannedTrial]:
        """Return the next round in the order to be run; empty when the search is over."""
        ...

    def why_not(self, planned: PlannedTrial, done: Sequence[Trial]) -> str | None:
        """Say why a trial of the round is not worth running after what was measured since; `None` where it is."""
        ...
