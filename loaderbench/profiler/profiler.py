"""Records your own training loop with three added lines."""

from __future__ import annotations

import random
import weakref
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from operator import index
from traceback import format_exception_only
from types import TracebackType
from typing import TYPE_CHECKING, Any

from loaderbench.cuda_use import uses_cuda
from loaderbench.errors import UsageError
from loaderbench.profiler.source import Claim, check_free, claim, profiled
from loaderbench.profiler.stage import Stage
from loaderbench.tracing.clock import thread

if TYPE_CHECKING:
    from loaderbench.profiler.user_stages import HostAndDevice
    from loaderbench.result import Run
    from loaderbench.tracing.clock import StageClock


class Profiler:
    """Measures how long each step of a training loop waits for its batch, and why.

    The first `warmup` batches and the first batch of every epoch are excluded. Recording stops after `steps` more
    batches, and the loop continues; by default, all batches are recorded. `trace=True` also times each stage of a
    sample inside the workers of a `DataLoader`. Raises `UsageError` for invalid arguments, and for a profiler started
    twice or stopped before it was started.

    Use it in a `with` block, or between `start()` and `stop()`. `result` is available from the first batch on.
    """

    def __init__(
        self, name: str = "profile", *, warmup: int = 10, steps: int | None = None, trace: bool = False
    ) -> None:
        warmup = checked_number("warmup", warmup, 0)
        steps = None if steps is None else checked_number("steps", steps, 1)
        from loaderbench.profiler.observer import Observer
        from loaderbench.recorder.loop import LoopCallbacks, LoopRecorder

        self.name = str(name)
        self.marks_functions = False
        self._trace, self._warmup = bool(trace), warmup
        self._observer = Observer()
        self._recorder = LoopRecorder(
            warmup,
            steps,
            LoopCallbacks(
                steady=partial(self._observer.steady, warmed_up=warmup > 0),
                body=self._body_ended,
                look=self._look,
                epoch_ended=self._epoch_ended,
                full=self._finish,
                find_made=self._observer.find_made,
            ),
        )
        self._state = "new"
        self._epoch_now: Any = None
        self._claimed: Claim | None = None
        self._thread = 0
        self._result: Run | None = None

    def start(self) -> Profiler:
        """Start recording. Raises `UsageError` if it was already started."""
        if self._state != "new":
            raise UsageError(f"profiler {self.name!r} was already started; create a new Profiler to record again")
        self._state = "running"
        self._observer.started()
        return self

    def stop(self) -> Run:
        """Stop recording and return the result. Raises `UsageError` if it was never started."""
        if self._state == "new":
            raise UsageError(f"profiler {self.name!r} was not started; call start() or use a `with` block")
        self._end()
        return self.result

    def gather(self) -> Run:
        """Stop recording, and collect the results of all ranks of `torch.distributed` in rank 0.

        Every rank must call it before the process group is destroyed, and waits in it for the others. In rank 0, the
        result then covers all ranks; in other ranks, and without a process group, it covers that rank alone. Raises
        `UsageError` like `stop`, and the error of `torch.distributed` if a collective fails.
        """
        self.stop()
        from loaderbench.profiler.result import make_job_run

        found = make_job_run(self.name, self._warmup, self._recorder, self._observer)
        if found is not None:
            self._result = found
        return self.result

    def __enter__(self) -> Profiler:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop recording. An exception of the loop propagates, and the results so far are kept."""
        fails = kind is not None and not issubclass(kind, GeneratorExit)  # which only leaves a generator
        self._observer.raised = "".join(format_exception_only(kind, error)).strip() if fails else ""
        self._end()

    def iter(self, source: Any) -> Any:
        """Wrap a `DataLoader`, a generator or any iterable of batches; iterating over the wrapper is recorded.

        A batch can be a tensor, or a tuple, list, dict or dataclass of tensors; the first dimension is the number of
        samples. The wrapper has the length and attributes of `source`. A profiler records one loader; each iteration
        over it is an epoch. Raises `UsageError` if `source` is not iterable, or if another profiler is already
        recording it.
        """
        check_free(source, self)
        if not hasattr(type(source), "__iter__") and not hasattr(type(source), "__getitem__"):
            raise UsageError(f"iter() expects a loader or another iterable of batches, got {type(source).__name__}")
        return profiled(source, self._epoch)

    def stage(self, name: str) -> Stage:
        """Mark a part of the loop or of loading, with `with` or as a decorator; also works in workers.

        Names must not contain `/`. `transfer` marks the host-to-device copy. Decorated functions are timed in workers
        even without `trace=True`. Raises `UsageError` for an invalid name.
        """
        if not isinstance(name, str) or not name or "/" in name:
            raise UsageError(f"stage() expects a name without '/', got {name!r}")
        return Stage(self, name)

    @property
    def result(self) -> Run:
        """The results so far, as a `Run`. Raises `UsageError` if the profiler was never started."""
        if self._state == "new":
            raise UsageError(f"profiler {self.name!r} was not started, so it has no result")
        if self._result is not None:
            return self._result
        self._add_up()
        is_final = self._observer.loop_has_ended
        state = random.getstate()  # an imported library may use `random`
        try:
            from loaderbench.profiler.result import make_run

            found = make_run(self.name, self._warmup, self._recorder, self._observer)
        finally:
            random.setstate(state)
        if is_final:
            self._result = found
        return found

    def loop_stage(self, name: str) -> tuple[StageClock | HostAndDevice, int] | None:
        """The clock of the loop's body, and the stage's number on that clock; `None` outside of a recorded body."""
        found = self._stage_now(name)
        self._recorder.marks |= found is not None
        return found

    def _stage_now(self, name: str) -> tuple[StageClock | HostAndDevice, int] | None:
        epoch = self._epoch_now and self._epoch_now()
        of_loop = thread() == self._thread
        if epoch is None or epoch.is_over or self._state != "running" or (epoch.is_making and of_loop):
            return None
        return self._observer.user_stages.find(name, of_loop=of_loop)

    def _epoch(self, source: Any) -> Iterator[Any]:
        """Begin an epoch over the source immediately, and record it if the source is the profiled loader."""
        if self._state == "new":
            raise UsageError(f"profiler {self.name!r} was not started; call start() or use a `with` block")
        check_free(source, self)
        if self._claimed is not None and source is self._claimed.source():
            self._leave_epoch()
        if self._state == "done" or not self._is_mine(source):
            in_a_step = self._claimed is not None and thread() == self._thread
            return self._observer.other_loaders.timed(iter(source)) if in_a_step else iter(source)
        from loaderbench.recorder.samples import given_batch_size

        if self._recorder.events is None and uses_cuda():
            self._time_on_device()
        if self._trace:
            self._recorder.keep_waits()
        self._claimed, self._thread = claim(source, self), thread()
        try:
            epoch = self._recorder.epoch(lambda: self._begin(source), given_batch_size(source))
        except BaseException:
            self._release()
            raise
        self._epoch_now = weakref.ref(epoch)
        return epoch

    def _leave_epoch(self) -> None:
        """Stop recording an epoch in progress: the loop has left it, or the recording ends."""
        earlier = self._epoch_now and self._epoch_now()
        if earlier is not None:
            with suppress(ValueError):  # the epoch is making a batch
                self._recorder.leave(earlier)

    def _time_on_device(self) -> None:
        from loaderbench.consumers.device_clock import clock_of_device
        from loaderbench.profiler.device_stages import DeviceStages

        self._recorder.events, of_stages = clock_of_device(), clock_of_device()
        if of_stages is not None:
            self._observer.user_stages.on_device = DeviceStages(of_stages)

    def _add_up(self) -> None:
        """Add up the batches, unless called from another thread while the loop may still add some."""
        if self._state == "running" and thread() == self._thread:
            self._recorder.add_up()

    def _is_mine(self, source: Any) -> bool:
        """Whether to record the source: not a nested epoch, and no other loader than the first."""
        if self._claimed is not None or (self._recorder.begun and not self._observer.known.is_like(source)):
            self._observer.passed += 1
            return False
        return True

    def _begin(self, source: Any) -> Iterator[Any]:
        return self._observer.begin_epoch(source, trace=self._trace, marks=self.marks_functions)

    def _body_ended(self, kind: int) -> None:
        self._observer.user_stages.end_body(kind)

    def _look(self) -> None:
        self._observer.look()

    def _epoch_ended(self) -> None:
        self._release()
        self._observer.divide(self._recorder.take_waits())
        self._observer.epoch_ended()

    def _release(self) -> None:
        if self._claimed is not None:
            self._claimed.release()
            self._claimed = None

    def _end(self) -> None:
        """Finish: the loop is over, even if its recording ended earlier, or if it continues unrecorded."""
        if self._state == "running" and self._claimed is not None and thread() == self._thread:
            self._leave_epoch()
        self._recorder.full = True
        self._finish()
        self._observer.loop_has_ended = True

    def _finish(self) -> None:
        if self._state == "running":
            self._state = "done"
            self._release()
            self._recorder.add_up()
            self._observer.divide(self._recorder.take_waits())
            self._observer.finish()

    def __reduce__(self) -> Any:
        """Pickle as a new profiler that records nothing. Stages that it marks in a worker reach the worker's tracer."""
        return type(self), (self.name,)

    def __repr__(self) -> str:
        return f"<Profiler {self.name!r}, {self._state}>"


def checked_number(name: str, value: Any, least: int) -> int:
    """The argument as an integer, which may be NumPy's. Raises `UsageError` unless it is at least `least`."""
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        with suppress(TypeError):  # an array of several numbers
            if (number := index(value)) >= least:
                return number
    raise UsageError(f"{name} must be an integer of {least} or more, got {value!r}")
