"""What is said of a distributed training of which one rank alone was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loaderbench.records import OnlyRank, Verdict


def of_only_rank(verdict: Verdict, only: OnlyRank | None) -> Verdict:
    """The verdict on the one rank that was recorded, which says that it is not on the whole training."""
    return verdict if only is None else replace(verdict, headline=f"in {only} alone: {verdict.headline}")


def warn_of_only_rank(only: OnlyRank | None) -> Iterator[str]:
    """That the other ranks may be what holds back the training."""
    if only is not None:
        yield f"only {only} was recorded, and another rank may hold it back; to record all: {only.command}"
