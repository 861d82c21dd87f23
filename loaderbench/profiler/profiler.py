"""Records a training loop of the user's own: three more lines, and no other change."""

from __future__ import annotations

import random
import sys
import weakref
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from loaderbench.errors import UsageError
from loaderbench.profiler.source import alike, check_free, claim, profiled, release
from loaderbench.profiler.stage import Stage
from loaderbench.tracing.clock import thread

if TYPE_CHECKING:
    from loaderbench.result import Run
    from loaderbench.tracing.clock import StageClock


class Profiler:
    """Says how long each step of a loop waited for its batch, and what went on meanwhile.

    `warmup` batches are kept apart, as is the first of every epoch; after `steps` more the loop passes through unseen.
    `trace=True` also times what happens to each sample inside the workers of a `DataLoader`. Raises `UsageError` for
    arguments that make no sense, and for a profiler that is started twice or stopped before it was started.

    Use it in a `with`, or between `start()` and `stop()`; `result` is there from the first batch on.
    """

    def __init__(
        self, name: str = "profile", *, warmup: int = 10, steps: int | None = None, trace: bool = False
    ) -> None:
        _check("warmup", warmup, 0)
        _check("steps", steps, 1)
        from loaderbench.profiler.observer import Observer
        from loaderbench.recorder.loop import LoopRecorder, Watch

        self.name = str(name)
        self.marks_functions = False
        self._trace, self._warmup = bool(trace), warmup
        self._observer = Observer()
        self._recorder = LoopRecorder(
            warmup,
            steps,
            Watch(
                steady=self._observer.steady,
                body=self._observer.user_stages.end_body,
                look=self._observer.look,
                epoch_ended=self._epoch_ended,
                full=self._finish,
                find_made=self._observer.find_made,
            ),
        )
        self._state = "new"
        self._epoch_now: Any = None
        self._claimed: Any = None
        self._thread = 0
        self._result: Run | None = None

    def start(self) -> Profiler:
        """Begin to record. Raises `UsageError` when it was started before."""
        if self._state != "new":
            raise UsageError(f"profiler {self.name!r} was started before; make a new Profiler for another recording")
        self._state = "running"
        self._observer.started()
        return self

    def stop(self) -> Run:
        """Record no more, and return the result. Raises `UsageError` when it was never started."""
        if self._state == "new":
            raise UsageError(f"profiler {self.name!r} was not started: call start() first, or use it in a `with`")
        self._recorder.full = True
        self._finish()
        return self.result

    def __enter__(self) -> Profiler:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop; what the loop raised passes through, and what was recorded until then is kept."""
        self._recorder.full = True
        self._observer.error = error
        self._finish()

    def iter(self, source: Any) -> Any:
        """`source`, iterated over as before and recorded: a `DataLoader`, a generator, any iterable of batches.

        Length and attributes are the source's. Raises `UsageError` where it cannot be iterated over, or where a
        profiler is at work on it already.
        """
        check_free(source, self)
        if not hasattr(source, "__iter__") and not hasattr(source, "__getitem__"):
            raise UsageError(f"iter() takes a loader or another iterable of batches, not {type(source).__name__}")
        return profiled(source, self._epoch)

    def stage(self, name: str) -> Stage:
        """A part of the loop or of the loading, marked by `with` or as a decorator; in workers too.

        What is decorated is timed in workers without `trace=True`, as only that and nothing else.
        """
        if not isinstance(name, str) or not name or "/" in name:
            raise UsageError(f"stage() takes a name without '/', not {name!r}")
        return Stage(self, name)

    @property
    def result(self) -> Run:
        """What was recorded until now, as a `Run`. Raises `UsageError` when it was never started."""
        if self._state == "new":
            raise UsageError(f"profiler {self.name!r} was not started: there is no result")
        if self._result is not None:
            return self._result
        if self._state == "running" and thread() == self._thread:  # another must not add up what the loop still adds to
            self._recorder.add_up()
        state = random.getstate()  # a library that is imported for it draws
        try:
            from loaderbench.profiler.result import make_run

            found = make_run(self.name, self._warmup, self._recorder, self._observer)
        finally:
            random.setstate(state)
        if self._state == "done":
            self._result = found
        return found

    def loop_stage(self, name: str) -> tuple[StageClock, int] | None:
        """The clock of the loop's body and the stage's number on it; `None` outside of a recorded body."""
        epoch = self._epoch_now and self._epoch_now()
        if epoch is None or self._state != "running" or (epoch.gi_running and thread() == self._thread):
            return None
        self._recorder.marks = True
        return self._observer.user_stages.find(name)

    def _epoch(self, source: Any) -> Iterator[Any]:
        """One epoch over the source, begun at once, and recorded if it is of the loader that is profiled."""
        if self._state == "new":
            raise UsageError(f"profiler {self.name!r} was not started: call start() first, or use it in a `with`")
        check_free(source, self)
        if self._state == "done" or not self._is_mine(source):
            return iter(source)
        self._recorder.events = _device_clock(self._recorder.events)
        if self._trace:
            self._recorder.keep_waits()
        claim(source, self)
        self._claimed, self._thread = source, thread()
        try:
            epoch = self._recorder.epoch(lambda: self._begin(source), getattr(source, "batch_size", None))
        except BaseException:
            self._release()
            raise
        self._epoch_now = weakref.ref(epoch)
        return epoch

    def _is_mine(self, source: Any) -> bool:
        """Whether to record it: not a second epoch within one, and not another loader than the first."""
        first = self._observer.source
        if self._claimed is not None or (first is not None and not alike(source, first)):
            self._observer.passed += 1
            return False
        return True

    def _begin(self, source: Any) -> Iterator[Any]:
        return self._observer.begin_epoch(source, trace=self._trace, marks=self.marks_functions)

    def _epoch_ended(self) -> None:
        self._release()
        self._observer.divide(self._recorder.take_waits())
        self._observer.epoch_ended()

    def _release(self) -> None:
        release(self._claimed)
        self._claimed = None

    def _finish(self) -> None:
        if self._state == "running":
            self._state = "done"
            self._release()
            self._recorder.add_up()
            self._observer.divide(self._recorder.take_waits())
            self._observer.finish()

    def __reduce__(self) -> Any:
        """Sent to a worker, it is a new one that records nothing; what it marks there, the worker's tracer finds."""
        return type(self), (self.name,)

    def __repr__(self) -> str:
        return f"<Profiler {self.name!r}, {self._state}>"


def _check(name: str, value: Any, least: int) -> None:
    if name == "steps" and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{name} is to be a whole number of {least} or more, not {value!r}")


def _device_clock(known: Any) -> Any:
    """The clock by events of a CUDA device, once the user's program has begun to use one."""
    torch = sys.modules.get("torch")
    if known is not None or torch is None or not torch.cuda.is_initialized():
        return known
    from loaderbench.consumers.cuda import CudaWaitClock

    return CudaWaitClock()
