"""Which steps of a loop are divided: the first of them, and then one of many."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from loaderbench.script.other_waits import OtherWaits
from loaderbench.script.step_stages import StepStages
from loaderbench.tracing.clock import thread

if TYPE_CHECKING:
    from types import FrameType

    from loaderbench.profiler.user_stages import HostAndDevice
    from loaderbench.script.loader_profiler import LoaderProfiler
    from loaderbench.tracing.clock import StageClock

EARLY_STEPS = 26
"""All of these except the first of an epoch: the warm-up, in case the loop ends there, and 16 more."""

EVERY = 127
"""Of the later steps, one in this many. It is prime: work that a loop does every 50 or 100 steps is sampled fairly."""

LEAST_LIMIT_S, LIMIT_STEPS = 1.0, 20.0
"""A divided step ends after so many seconds or mean batches of its epoch, whichever is longer: its loop was left."""

NEVER = -1


class DividedSteps:
    """The steps of one loader's loop, over its epochs.

    Called for every batch. `at` is the number of the latest step, `due` that of the next step to divide. `other_waits`
    are those of all steps for batches of other loaders, `thread` is the one that takes the batches. `optimizes`: the
    latest step that ended updated a model.
    """

    __slots__ = (
        "_began", "_began_s", "_loader", "_updates", "at", "calls_model", "due", "optimizes", "other_waits", "stages",
        "thread",
    )  # fmt: skip

    def __init__(self, stages: StepStages, loader: LoaderProfiler) -> None:
        self.stages, self._loader = stages, loader
        self.calls_model, self.other_waits = False, OtherWaits()
        self.thread: int | None = None
        self.at, self.due = 0, NEVER
        self._began, self._began_s = 0, time.perf_counter()
        self._updates, self.optimizes = stages.updates, False

    def step_ended(self) -> None:
        """The next batch is asked for."""
        self.optimizes, self._updates = self.stages.updates > self._updates, self.stages.updates

    def begin_epoch(self) -> None:
        """The next batch is the first of an epoch, which is not counted."""
        self.other_waits.leave()
        self.at = self._began = self._loader.batches_done - 1
        self._began_s = time.perf_counter()
        self.due = self._after(self.at + 1) if self.due == NEVER else max(self.due, self.at + 2)

    def none(self) -> DividedSteps:
        """The steps of a loop that is no longer recorded: none is divided."""
        return DividedSteps(self.stages, self._loader)

    def divide(self, asks: FrameType) -> None:
        """Divide the step that begins, which is due; `asks` is what asked for its batch."""
        self.due, self.thread = NEVER if self._loader.is_over else self._after(self.at), thread()
        if self.due != NEVER:
            mean_s = (time.perf_counter() - self._began_s) / max(1, self.at - self._began)
            longest_s = max(LEAST_LIMIT_S, LIMIT_STEPS * mean_s)
            self.stages.divide(self, None if self._loader.times_device else asks, longest_s)

    def stage(self, name: str) -> tuple[StageClock | HostAndDevice, int] | None:
        """The clock of the step, and the stage's number on it; `None` outside of a recorded step."""
        return self._loader.loop_stage(name)

    def step_divided(self, took_s: float | None, around: str) -> None:
        """A step that took so long has been divided; `None`: it is not to be counted. `around` is a place, or empty."""
        self._loader.step_divided(self.at, took_s, around)

    @staticmethod
    def _after(step: int) -> int:
        return step + (1 if step + 1 < EARLY_STEPS else EVERY)
