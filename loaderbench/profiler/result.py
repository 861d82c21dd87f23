"""From what a profiler recorded to a run, concluded like any other."""

from __future__ import annotations

from loaderbench.conclusion import conclude
from loaderbench.profiler.gathering import gather_ranks
from loaderbench.profiler.measured import measured_so_far
from loaderbench.profiler.observer import Observer
from loaderbench.recorder.loop import LoopRecorder
from loaderbench.recorder.ranks import merge_ranks
from loaderbench.result import Run


def make_run(name: str, warmup: int, recorder: LoopRecorder, observer: Observer) -> Run:
    """Conclude from what was recorded until now."""
    measured, readings = measured_so_far(name, warmup, recorder, observer)
    return Run(conclude(measured), readings)


def make_job_run(name: str, warmup: int, recorder: LoopRecorder, observer: Observer) -> Run | None:
    """Conclude from what all ranks recorded; `None` in all but rank 0, and without a process group."""
    ranks = gather_ranks(*measured_so_far(name, warmup, recorder, observer), recorder.steps())
    if not ranks:
        return None
    measured, readings = merge_ranks(ranks)
    return Run(conclude(measured), readings)
