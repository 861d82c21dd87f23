"""A `Profiler` for a loader in an unmodified loop."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from loaderbench.profiler import Profiler
from loaderbench.profiler.measured import Script, measured_so_far
from loaderbench.profiler.readings import counted, stages_of_loop, takes_no_others
from loaderbench.profiler.user_stages import AROUND
from loaderbench.recorder.batches import APART, STEADY, WARMUP
from loaderbench.recorder.steps import StepTimes
from loaderbench.records import Measured, Readings
from loaderbench.tracing.loader import Begin
from loaderbench.tracing.loop_lines import LineTimes

if TYPE_CHECKING:
    from loaderbench.profiler.user_stages import HostAndDevice
    from loaderbench.tracing.clock import StageClock

CLOCKED_STEPS = 20


class LoaderProfiler(Profiler):
    """Records epochs of a loader, each begun by `begin`, until `until_s` of the monotonic clock.

    `epoch_ended` is called when an epoch ends or the loop leaves it. `between_batches` is called occasionally, or for
    every batch of an epoch with `stop_at_each`. `steps_cpu_s` holds the CPU time of this process in each of the latest
    steps, if they are clocked.
    """

    def __init__(
        self,
        name: str,
        begin: Begin,
        *,
        steps: int | None,
        until_s: float,
        epoch_ended: Callable[[LoaderProfiler], None],
        between_batches: Callable[[LoaderProfiler], None],
    ) -> None:
        super().__init__(name, steps=steps, trace=True)
        self._observer.begin = begin
        self.steps_cpu_s: deque[float] = deque(maxlen=CLOCKED_STEPS)
        self._until_s, self._tell_epoch_ended, self._between_batches = until_s, epoch_ended, between_batches
        self.start()

    @property
    def source(self) -> Any:
        """The loader of the latest epoch; `None` before the first epoch, and once the script has dropped the loader."""
        return self._observer.known.loader

    def continues_with(self, loader: Any) -> bool:
        """Whether an epoch over this loader can be the next one.

        A loader can replace one over a freed dataset, as in another fold. While both datasets exist, the loaders are
        different: those for training and validation can be created on one line and have the same length.
        """
        return self._observer.known.is_continued_by(loader) and not self.under_way

    def is_alike(self, loader: Any) -> bool:
        """Whether loader and dataset have the same classes as those recorded, and no epoch is under way."""
        return self._observer.known.is_of_same_classes(loader) and not self.under_way

    def share(self) -> None:
        """Record several loaders, each of which can have epochs of its own."""
        self._observer.is_shared = True

    @property
    def is_shared(self) -> bool:
        """Whether several loaders are recorded."""
        return self._observer.is_shared

    @property
    def is_over(self) -> bool:
        """Whether no more epochs are recorded."""
        return self._state == "done" or self._recorder.full

    @property
    def batches_done(self) -> int:
        """Number of batches that the loop has finished; exact between two epochs."""
        return self._recorder.seen

    @property
    def steady_batches(self) -> int:
        """Number of finished batches after the warm-up."""
        return max(0, self.batches_done - self._warmup)

    @property
    def times_device(self) -> bool:
        """Whether waits are measured on a device, because the host runs ahead of it."""
        return self._recorder.events is not None

    @property
    def leaves_epochs(self) -> bool:
        """Whether the loop leaves every epoch at its first or second batch, as with `next(iter(loader))`."""
        return takes_no_others(self._recorder) and self._recorder.apart.has_left

    @property
    def under_way(self) -> bool:
        """Whether an epoch is being recorded."""
        return self._claimed is not None

    def epoch(self, loader: Any, *, stop_at_each: bool = False) -> Iterator[Any]:
        """Begin an epoch and record it."""
        self._recorder.marks = stop_at_each
        return self._epoch(loader)

    def loop_stage(self, name: str) -> tuple[StageClock | HostAndDevice, int] | None:
        """Like the base class, but the stage does not make the loop stop at each batch."""
        return self._stage_now(name)

    def step_divided(self, step: int, took_s: float | None, around: str = "") -> None:
        """Record that a step was divided and took `took_s` seconds; `None` if the step does not count.

        `around` is the place of the code around the loader, or empty.
        """
        if took_s is not None and around:
            self._observer.code_around = around
        kind = APART if took_s is None else STEADY if step >= self._warmup else WARMUP
        self._observer.user_stages.end_body(kind, took_s)

    @property
    def step_lines(self) -> LineTimes:
        """The lines of the loop outside of the timed parts of a step."""
        return self._observer.step_lines

    @property
    def between_s(self) -> float | None:
        """Mean seconds between epochs so far; `None` before the second epoch."""
        recorder = self._recorder
        return recorder.between_s / (recorder.begun - 1) if recorder.begun > 1 else None

    def add_between(self, lines: LineTimes) -> None:
        """Add the lines that ran between two epochs."""
        self._observer.between_lines.merge(lines)

    def note_pause(self) -> None:
        """Note that the script starts another epoch on the iterator being recorded."""
        self._recorder.note_pause()

    def end(self) -> None:
        """Stop recording."""
        self._end()

    def _is_mine(self, source: Any) -> bool:  # noqa: ARG002 - callers of `epoch` check `continues_with` first
        return self._claimed is None

    @property
    def steps(self) -> StepTimes | None:
        """Start and end times of the last steps; `None` if unknown."""
        return self._recorder.steps()

    @property
    def around_s(self) -> float:
        """Seconds per batch of code around the loader, which count as data wait."""
        if not counted(self._recorder).batches:
            return 0.0
        cost = stages_of_loop(self._recorder, self._observer).get(AROUND)
        return (cost.wall_s or 0.0) if cost else 0.0

    def measured(self, script: Script) -> tuple[Measured, Readings]:
        """What was recorded so far. Can be called from another thread than the loop's."""
        self._add_up()
        return measured_so_far(self.name, self._warmup, self._recorder, self._observer, script)

    def _body_ended(self, _: int) -> None:
        """Skip the base class: stages are added up when a step was divided."""
        self._between_batches(self)

    def _epoch_ended(self) -> None:
        self._tell_epoch_ended(self)
        super()._epoch_ended()

    def _look(self) -> None:
        """Also add up the batches, which only the loop's thread can do, and stop at the time limit."""
        super()._look()
        self._recorder.add_up()
        if time.monotonic() > self._until_s:
            self._recorder.full = True
            self._finish()
        self._between_batches(self)
