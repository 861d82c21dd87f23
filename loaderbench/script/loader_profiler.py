"""A `Profiler` for a loader whose loop nobody has changed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from loaderbench.profiler import Profiler
from loaderbench.profiler.measured import Script, measured_so_far
from loaderbench.recorder.steps import StepTimes
from loaderbench.records import Measured, Readings
from loaderbench.tracing.loader import Begin

CLOCKED_STEPS = 20


class LoaderProfiler(Profiler):
    """Records the epochs that it is given, each begun by `begin`, until `until_s` of the monotonic clock.

    `step_ended` is called when the loop is done with a batch, and then `between_batches`, once a stage of its steps was
    entered; without one, `between_batches` is called now and then. `steps_cpu_s` is the CPU time of this process in
    each of the latest steps, where they are clocked.
    """

    def __init__(
        self,
        name: str,
        begin: Begin,
        *,
        steps: int | None,
        until_s: float,
        step_ended: Callable[[], None],
        between_batches: Callable[[LoaderProfiler], None],
    ) -> None:
        super().__init__(name, steps=steps, trace=True)
        self._observer.begin = begin
        self.steps_cpu_s: deque[float] = deque(maxlen=CLOCKED_STEPS)
        self._until_s, self._step_ended, self._between_batches = until_s, step_ended, between_batches
        self.start()

    @property
    def source(self) -> Any:
        """The loader of the latest epoch; `None` before the first."""
        return self._observer.source

    @property
    def is_over(self) -> bool:
        """Whether no further epoch is recorded."""
        return self._state == "done" or self._recorder.full

    @property
    def steady_batches(self) -> int:
        """Batches that the loop is done with, after those of the warm-up."""
        return max(0, self._recorder.seen - self._warmup)

    @property
    def under_way(self) -> bool:
        """Whether an epoch is being recorded."""
        return self._claimed is not None

    def epoch(self, loader: Any) -> Iterator[Any]:
        """Begin an epoch, which is recorded."""
        return self._epoch(loader)

    def end(self) -> None:
        """Stop recording."""
        self._recorder.full = True
        self._finish()

    @property
    def steps(self) -> StepTimes | None:
        """When the last steps began and ended; `None` where that is not known."""
        return self._recorder.steps()

    def measured(self, script: Script) -> tuple[Measured, Readings]:
        """What was recorded until now; may be called by another thread than the loop's."""
        self._add_up()
        return measured_so_far(self.name, self._warmup, self._recorder, self._observer, script)

    def _body_ended(self, kind: int) -> None:
        self._step_ended()
        super()._body_ended(kind)
        self._between_batches(self)

    def _look(self) -> None:
        """As always; and only the loop's thread can add up what another saves."""
        super()._look()
        self._recorder.add_up()
        if time.monotonic() > self._until_s:
            self._recorder.full = True
        self._between_batches(self)
