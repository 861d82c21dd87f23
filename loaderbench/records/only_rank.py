"""The one rank of a distributed training that a run is about, where the others were not recorded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class OnlyRank:
    """Which of how many `ranks` it is, and the `command` that records all of them."""

    rank: int
    ranks: int
    command: str

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.ranks}"
