"""The results of all ranks in one of them, over the process group that they train with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from loaderbench.ranks import this_host
from loaderbench.recorder.ranks import RankRun
from loaderbench.recorder.steps import StepTimes
from loaderbench.records import Measured, Readings


def gather_ranks(measured: Measured, readings: Readings, steps: StepTimes | None) -> list[RankRun]:
    """Those of all ranks, in rank 0; empty in the others, and without a process group of several."""
    from torch import distributed

    if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size() < 2:
        return []
    rank = distributed.get_rank()
    found: list[Any] | None = [None] * distributed.get_world_size() if rank == 0 else None
    distributed.gather_object(RankRun(rank, _with_host(measured), readings, steps), found)
    return list(found or ())


def _with_host(measured: Measured) -> Measured:
    """A rank may have been started by something else than torch's launcher."""
    return replace(measured, trials=tuple(replace(trial, host=this_host()) for trial in measured.trials))
