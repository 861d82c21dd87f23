"""Recorded epochs of a loop in this process, as `loaderbench profile` records those of a script."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

from loaderbench.result import Run
from loaderbench.script.divided_steps import DividedSteps
from loaderbench.script.loader_profiler import LoaderProfiler
from loaderbench.script.recorded_epoch import RecordedEpoch
from loaderbench.script.step_stages import StepStages


class Loop:
    """The recorded epochs of one loader, some of whose steps are divided."""

    def __init__(self, stages: StepStages) -> None:
        def ended(_: LoaderProfiler) -> None:
            stages.leave_step(None)

        self.profiler = LoaderProfiler(
            "train", iter, steps=None, until_s=inf, epoch_ended=ended, between_batches=lambda _: None
        )
        self.steps = DividedSteps(stages, self.profiler)

    @property
    def result(self) -> Run:
        return self.profiler.result

    def epoch(self, batches: Any) -> RecordedEpoch:
        found = self.profiler.epoch(batches)
        self.steps.begin_epoch()
        return RecordedEpoch(found, batches, self.steps)


@contextmanager
def step_stages() -> Iterator[StepStages]:
    made = StepStages(watches_optimizers=False)
    made.begin()
    try:
        yield made
    finally:
        made.end()
