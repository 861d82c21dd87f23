"""Watches the loader while a profiler records: workers from outside, stages from inside, devices now and then."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

from loaderbench.monitors import GpuMonitor
from loaderbench.profiler.looks import Looks
from loaderbench.recorder.inside import NOT_ASKED
from loaderbench.records import Gpu, Reasons
from loaderbench.tracing import LoaderTrace, Mark, NoViewError, Traced, is_loader
from loaderbench.tracing.clock import StageClock

MEMORY_AFTER_S = 1.0


class Observer:
    """Everything about a profiled loop but its batches. Between two batches it takes no longer than a look."""

    def __init__(self) -> None:
        self.source: Any = None
        self.error: Exception | None = None
        self.began_at, self.ended_at = "", ""
        self.why_not_traced = NOT_ASKED
        self.gpus: tuple[Gpu, ...] = ()
        self.no_gpu: Reasons = {"gpus": "the loop used no CUDA device"}
        self.gpu_monitor = GpuMonitor(())
        self.looks, self._looks_warming = Looks(), Looks()
        self.loop_clock = StageClock()
        self.loop_places: dict[str, int] = {}
        self.trace: LoaderTrace | None = None
        self._traced: Traced | None = None
        self._mark: Mark | None = None
        self._pids: tuple[int, ...] = ()
        self._memory: threading.Thread | None = None
        self._steady_at_s = time.perf_counter()

    def started(self) -> None:
        """Note when."""
        self.began_at = _now()

    def place(self, name: str) -> int:
        """The number of a stage of the loop's body; "" is what lies outside of all."""
        if name not in self.loop_places:
            self.loop_places[name] = len(self.loop_places)
            self.loop_clock.add_stage()
        return self.loop_places[name]

    def begin_epoch(self, source: Any, *, trace: bool, marks: bool) -> Callable[[], Iterator[Any]]:
        """What begins an epoch over the source, traced where that was asked for and can be."""
        if source is not self.source:
            self.source = source
            self._attach(source, trace, marks)
        return self._begin

    def steady(self) -> None:
        """Warm-up is over: what was seen until now is kept apart."""
        self._looks_warming, self.looks = self.looks, Looks()
        self._mark = self.trace.mark() if self.trace else None
        self.loop_clock.clear()
        self._steady_at_s = time.perf_counter()

    def look(self) -> None:
        """Read what can be read in some microseconds."""
        looks = self.looks
        looks.take(self._pids, self.gpu_monitor)
        if self._memory is None and time.perf_counter() - self._steady_at_s > MEMORY_AFTER_S:
            self._memory = threading.Thread(target=looks.read_memory, args=(self._pids,), daemon=True)
            self._memory.start()

    def epoch_ended(self) -> None:
        """What happens until the next look is no part of the steady state."""
        self.looks.workers.pause()

    def finish(self) -> None:
        """Look no more, and trace no more."""
        self.ended_at = _now()
        if self._memory is None:
            self.looks.read_memory(self._pids)
        else:
            self._memory.join(MEMORY_AFTER_S)
        if self.looks.workers.states() is None and self._looks_warming.workers.states() is not None:
            self.looks = self._looks_warming
        self._traced = self.traced()
        if self.trace is not None:
            self.trace.stop()

    @staticmethod
    def now() -> str:
        """The moment, as records write it."""
        return _now()

    def traced(self) -> Traced | None:
        """What was traced in the steady state; all of it, where the workers were done before that began."""
        if self.trace is None or self._traced is not None:
            return self._traced
        found = self.trace.read(self._mark)
        return found if found.traced else self.trace.read()

    def _attach(self, source: Any, trace: bool, marks: bool) -> None:
        if self.trace is not None:  # a new loader for the next epoch: the old one's workers are gone
            self.trace.stop()
        self.trace, self._mark = None, None
        if not trace and not marks:
            return
        if not is_loader(source):
            kind = type(source).__name__
            self.why_not_traced = f"the batches come from a {kind}, not a DataLoader: nothing inside it can be timed"
            return
        try:
            self.trace = LoaderTrace(source, marks_only=not trace)
        except NoViewError as error:
            self.why_not_traced = f"the loader cannot be traced without changing it: {error}"

    def _begin(self) -> Iterator[Any]:
        """Begin the epoch, and learn which processes it starts."""
        from multiprocessing import active_children

        self._find_gpus()
        before = {child.pid for child in active_children()}
        batches = self.trace.batches() if self.trace is not None else iter(self.source)
        started = tuple(child.pid for child in active_children() if child.pid and child.pid not in before)
        self._pids = started or tuple(pid for pid in self._pids if pid in before)
        return batches

    def _find_gpus(self) -> None:
        torch = sys.modules.get("torch")
        if self.gpus or torch is None or not torch.cuda.is_initialized():
            return
        from loaderbench.consumers.cuda import visible_gpus

        self.gpus, self.no_gpu = visible_gpus()
        self.gpu_monitor = GpuMonitor(self.gpus)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
