"""Turns a profiler's recording, of this process or of all ranks, into a run with conclusions."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from loaderbench.conclusion import conclude
from loaderbench.cuda_use import computing_device
from loaderbench.profiler.measured import measured_so_far
from loaderbench.profiler.observer import Observer
from loaderbench.ranks import this_host
from loaderbench.recorder.loop import LoopRecorder
from loaderbench.recorder.ranks import RankRun, merge_ranks
from loaderbench.recorder.steps import StepTimes
from loaderbench.records import Measured, Readings
from loaderbench.result import Run


def make_run(name: str, warmup: int, recorder: LoopRecorder, observer: Observer) -> Run:
    """Conclude from the recording so far."""
    measured, readings = measured_so_far(name, warmup, recorder, observer)
    return Run(conclude(measured), readings)


def make_job_run(name: str, warmup: int, recorder: LoopRecorder, observer: Observer) -> Run | None:
    """Conclude from the recordings of all ranks; `None` in all ranks but 0, and without a process group."""
    ranks = gather_ranks(*measured_so_far(name, warmup, recorder, observer), recorder.steps())
    if not ranks:
        return None
    measured, readings = merge_ranks(ranks)
    return Run(conclude(measured), readings)


def gather_ranks(measured: Measured, readings: Readings, steps: StepTimes | None) -> list[RankRun]:
    """The recordings of all ranks, in rank 0; empty in other ranks, and without a process group of several."""
    from torch import cuda, distributed

    if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size() < 2:
        return []
    rank = distributed.get_rank()
    found: list[Any] | None = [None] * distributed.get_world_size() if rank == 0 else None
    device = computing_device()
    with nullcontext() if device is None else cuda.device(device):  # NCCL uses the current GPU, by default the first
        distributed.gather_object(RankRun(rank, _with_host(measured), readings, steps), found)
    return list(found or ())


def _with_host(measured: Measured) -> Measured:
    """Add the host name, since a rank may have been started by another launcher than torch's."""
    return replace(measured, trials=tuple(replace(trial, host=this_host()) for trial in measured.trials))
