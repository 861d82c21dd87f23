"""Chooses which steps of a loop are divided into stages: all early ones, then a sample of the later ones.

Also sums the waits of a loop for batches of other loaders.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from loaderbench.profiler.other_loaders import waits_for_others
from loaderbench.script.step_stages import StepStages
from loaderbench.tracing.clock import thread

if TYPE_CHECKING:
    from types import FrameType

    from loaderbench.profiler.user_stages import HostAndDevice
    from loaderbench.script.loader_profiler import LoaderProfiler
    from loaderbench.tracing.clock import StageClock
    from loaderbench.tracing.loop_lines import LineTimes


_now_s = time.perf_counter


class _Waited(threading.local):
    """Seconds that this thread has waited for batches of any recorded loader."""

    seconds = 0.0


_waited = _Waited()


class OtherWaits:
    """The waits of one loop, over all epochs. Called for every batch, before and after the loop waits for it."""

    __slots__ = ("_asked_s", "_has_batch", "_others_s", "_own_s", "_steps_s", "_waited_s")

    def __init__(self) -> None:
        self._asked_s = self._waited_s = 0.0  # when the last batch was requested; the total wait when it arrived
        self._steps_s = self._others_s = self._own_s = 0.0  # of all steps; of waits for other loaders and for this one
        self._has_batch = False

    def asks(self) -> None:
        """Note that the loop asks for the next batch, which ends the step with the last one."""
        now_s = _now_s()
        if self._has_batch:
            self._steps_s += now_s - self._asked_s
            self._others_s += _waited.seconds - self._waited_s
            self._has_batch = False
        self._asked_s = now_s

    def got(self) -> None:
        """Note that the batch has arrived."""
        took_s = _now_s() - self._asked_s
        self._own_s += took_s
        _waited.seconds += took_s
        self._waited_s, self._has_batch = _waited.seconds, True

    def leave(self) -> None:
        """Note that the epoch is over. The time until the next epoch belongs to no step."""
        self._has_batch = False

    @property
    def share(self) -> float:
        """Waits for other loaders, as a share of the time of all finished steps, request to request."""
        return self._others_s / self._steps_s if self._steps_s else 0.0

    @property
    def are_for_others(self) -> bool:
        """Whether the loop waits for batches of other loaders rather than for its own."""
        return waits_for_others(self.share, self._own_s / self._steps_s if self._steps_s else None)


EARLY_STEPS = 26
"""Steps of an epoch that are all divided, except its first: the warm-up, in case the loop ends there, and 16 more."""

EVERY = 127
"""One in this many later steps is divided. A prime samples work fairly that a loop does every 50 or 100 steps."""

LEAST_LIMIT_S, LIMIT_STEPS = 1.0, 20.0
"""A divided step ends after this many seconds or mean batches, whichever is longer: the loop was left by then."""

NEVER = -1


class DividedSteps:
    """The steps of one loader's loop, over all its epochs.

    This code runs for every batch. `at` is the number of the latest step, `due` that of the next step to divide.
    `other_waits` holds the waits of all steps for batches of other loaders, and `thread` is the thread that takes the
    batches. `optimizes`: the latest completed step updated a model.
    """

    __slots__ = (
        "_began", "_began_s", "_loader", "_updates", "at", "calls_model", "due", "goes_backward", "optimizes",
        "other_waits", "stages", "thread", "trains",
    )  # fmt: skip

    def __init__(self, stages: StepStages, loader: LoaderProfiler) -> None:
        self.stages, self._loader = stages, loader
        self.calls_model, self.trains, self.other_waits = False, False, OtherWaits()
        self.goes_backward: bool | None = None
        self.thread: int | None = None
        self.at, self.due = 0, NEVER
        self._began, self._began_s = 0, time.perf_counter()
        self._updates, self.optimizes = stages.updates, False

    def step_ended(self) -> None:
        """Note that a step has ended, because the loop asks for the next batch."""
        self.optimizes, self._updates = self.stages.updates > self._updates, self.stages.updates

    def begin_epoch(self) -> None:
        """Start an epoch; its first batch, which comes next, is not counted."""
        self.other_waits.leave()
        self.at = self._began = self._loader.batches_done - 1
        self._began_s = time.perf_counter()
        self.due = self._after(self.at + 1) if self.due == NEVER else max(self.due, self.at + 2)

    def none(self) -> DividedSteps:
        """The steps of a loop that is no longer recorded: no step is divided."""
        return DividedSteps(self.stages, self._loader)

    def divide(self, asks: FrameType) -> None:
        """Divide the step that begins now. `asks` is the frame that asked for its batch."""
        self.due, self.thread = NEVER if self._loader.is_over else self._after(self.at), thread()
        if self.due != NEVER:
            mean_s = (time.perf_counter() - self._began_s) / max(1, self.at - self._began)
            longest_s = max(LEAST_LIMIT_S, LIMIT_STEPS * mean_s)
            self.stages.divide(self, None if self._loader.times_device else asks, longest_s)

    @property
    def lines(self) -> LineTimes:
        """The lines of the loop outside of the timed parts of a step."""
        return self._loader.step_lines

    def stage(self, name: str) -> tuple[StageClock | HostAndDevice, int] | None:
        """The step's clock, and the stage's number on that clock; `None` outside of a recorded step."""
        return self._loader.loop_stage(name)

    def step_divided(self, took_s: float | None, around: str) -> None:
        """Record a divided step of `took_s` seconds; `None` if it does not count. `around` is a place, or empty."""
        self._loader.step_divided(self.at, took_s, around)

    @staticmethod
    def _after(step: int) -> int:
        return step + (1 if step + 1 < EARLY_STEPS else EVERY)
