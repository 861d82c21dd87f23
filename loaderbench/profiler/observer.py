"""Watches the loader while a profiler records: worker processes, stages inside the loader, and devices."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import isgenerator
from types import FrameType
from typing import Any

from loaderbench.cuda_use import PeakMemory, cuda_devices_in_use, cuda_devices_with_memory, peak_memory, uses_cuda
from loaderbench.monitors import BlockedThread, GpuMonitor, GpuThread
from loaderbench.own_threads import OwnThread
from loaderbench.profiler.known_loader import KnownLoader
from loaderbench.profiler.other_loaders import OtherLoaders
from loaderbench.profiler.resource_samples import ResourceSamples
from loaderbench.profiler.user_stages import UserStages
from loaderbench.recorder.inside import stalls_of
from loaderbench.recorder.samples import count_samples, counter_of_items
from loaderbench.recorder.stalls import StallSums, Wait
from loaderbench.records import BusyThread, Gpu, Reasons
from loaderbench.records.words import utc_now
from loaderbench.tracing.loader import Begin, IterableTrace, LoaderTrace, is_loader
from loaderbench.tracing.loop_lines import LineTimes
from loaderbench.tracing.made import Made
from loaderbench.tracing.reading import Mark, Traced

MEMORY_AFTER_S = 1.0
GPU_INTERVAL_S = 0.2

_MOST_WITHIN = 4  # iterators around torch's


class Observer:
    """Collects everything about a profiled loop except its batches. Work between two batches stays brief."""

    def __init__(self) -> None:
        self.known = KnownLoader(None)
        self.is_renewed = False  # a later epoch has another loader
        self.is_shared = False  # several loaders are recorded together
        self.begin: Begin = iter
        self.raised = ""  # the loop's exception as text; the object would keep all its frames alive
        self.loop_has_ended = False  # the recording may have ended earlier
        self.began_at, self.ended_at = "", ""
        self.gpus: tuple[Gpu, ...] = ()
        self.gpus_in_use: tuple[Gpu, ...] = ()
        self.peak_memory: tuple[PeakMemory, ...] = ()
        self.no_gpu: Reasons = {"gpus": "the loop used no CUDA device"}
        self.watch_gpus(())
        self.resources, self._resources_warming = ResourceSamples(), ResourceSamples()
        self.user_stages = UserStages()
        self.trace: LoaderTrace | IterableTrace | None = None
        self.stalls = StallSums()
        self.code_around = ""  # its place in the code
        self.other_loaders = OtherLoaders()
        self.step_lines, self.between_lines = LineTimes(), LineTimes()  # of the loop, under `profile`
        self._blocked = BlockedThread()
        self._under_way = self._watches = False  # an epoch is in progress; threads watch it
        self._watch_blocked = False
        self._traced: Traced | None = None
        self._mark: Mark | None = None
        self._epochs = self._epochs_before = 0  # begun in total, and before the current trace
        self.passed = 0  # epochs not recorded: of other loaders, or nested in another epoch
        self._pids: tuple[int, ...] = ()
        self._starts_later: Callable[[], Any] | None = None  # a generator, which starts workers at its first `next()`
        self._memory: OwnThread | None = None
        self._steady_at_s = self._began_s = time.perf_counter()
        self._ended_s = float("inf")

    def started(self) -> None:
        """Record the start time."""
        self.began_at = utc_now()

    def begin_epoch(self, source: Any, *, trace: bool, marks: bool) -> Iterator[Any]:
        """Begin an epoch over the source, traced if requested and possible."""
        earlier = self.known
        if not earlier.is_same(source):
            self.known = KnownLoader(source)
            self.is_renewed = self._epochs > 0 and not self.is_shared and is_loader(source)
        same_kind = isinstance(self.trace, LoaderTrace) == is_loader(source)
        if self.trace is None or not same_kind or earlier.workers != self.known.workers:
            self._attach(source, trace, marks)
        else:
            self.trace.follow(source)
        self._end_threads()  # beginning the epoch may fork
        batches = self._begin(source, watch=trace)
        self._epochs += 1
        return batches

    def find_made(self, epoch: int, batch: int) -> Made | None:
        """Who made a batch of an epoch; `None` if nothing is traced, or if that is no longer known."""
        return self.trace.made(epoch - self._epochs_before, batch) if self.trace else None

    def steady(self, *, warmed_up: bool = True) -> None:
        """Start the steady state. Earlier readings are excluded; without a warm-up, stages are kept."""
        self._resources_warming, self.resources = self.resources, ResourceSamples()
        self._memory = None  # memory read during the warm-up does not count
        self._blocked.forget()
        self.other_loaders.forget()
        self.resources.begin()
        self._mark = self.trace.mark() if self.trace and warmed_up else None
        self._steady_at_s = time.perf_counter()

    def look(self) -> None:
        """Take readings that cost only microseconds. The first call of an epoch starts the threads, after a step."""
        resources = self.resources
        if self._under_way and not self._watches:
            self._begin_threads()
            resources.resume()
        resources.take(self._pids, self.trace.senders if isinstance(self.trace, LoaderTrace) else ())
        if self._memory is None and time.perf_counter() - self._steady_at_s > MEMORY_AFTER_S:
            memory = OwnThread("memory", resources.read_memory, self._pids)
            with suppress(RuntimeError):  # no more threads can be started
                memory.start()
                self._memory = memory

    def divide(self, waits: Sequence[Wait]) -> None:
        """Match the waits of an epoch with the batches that its workers made."""
        if waits and isinstance(self.trace, LoaderTrace) and self.trace.workers:
            self.stalls.add(stalls_of(waits, self.trace.made_last(), self.trace.workers))

    def epoch_ended(self) -> None:
        """Pause: time until the next call of `look` does not belong to the steady state."""
        self._end_looking()
        self.resources.workers.pause()
        if self.trace is not None:
            self.known.note(self.trace.slow_samples())

    def _end_looking(self) -> None:
        """Stop the threads, at an epoch's end or in the middle of the last epoch."""
        if self._under_way:
            self._under_way = False
            if self._watches:
                self._end_threads()
                self.resources.take_last(self._pids)

    def _begin_threads(self) -> None:
        self._watches = True
        if self._starts_later is not None and not self._pids:
            self._pids = _pids_of(self._starts_later())
        if self._watch_blocked:
            self._blocked.begin(self._pids)
        if isinstance(self.trace, LoaderTrace):
            self.trace.begin_threads()
        self.gpu_thread.begin()

    def _end_threads(self) -> None:
        self._watches = False
        self._blocked.end()
        self.gpu_thread.end()
        if isinstance(self.trace, LoaderTrace):
            self.trace.end_threads()

    @property
    def busy_thread(self) -> BusyThread | None:
        """The busiest other Python thread of this process, and how long threads wait for the GIL."""
        found = self.resources.busy_thread
        return replace(found, gil_wait_s=self._blocked.gil_wait_s) if found else None

    def blocked_on(self) -> dict[str, float] | None:
        """What the loading processes were blocked on, as shares of all checks: the workers, or else this process."""
        return self._blocked.blocked.shares()

    def finish(self) -> None:
        """Stop watching and tracing."""
        self._end_looking()
        self.ended_at, self._ended_s = utc_now(), time.perf_counter()
        in_use, self.peak_memory = cuda_devices_in_use(), peak_memory()
        self.gpus_in_use = tuple(gpu for gpu in self.gpus if gpu.index in in_use)
        if self._memory is None:
            self.resources.read_memory(self._pids)
        else:
            self._memory.wait(MEMORY_AFTER_S)
        if self.resources.workers.states() is None and self._resources_warming.workers.states() is not None:
            self.resources, self._steady_at_s = self._resources_warming, self._began_s
        self._traced = self.traced()
        if self.trace is not None:
            self.trace.stop()

    def traced(self) -> Traced | None:
        """What was traced in the steady state, or in total if the workers had finished before it began."""
        if self.trace is None or self._traced is not None:
            return self._traced
        found = self.trace.read(self._mark)
        return found if found.traced else self.trace.read()

    def _attach(self, source: Any, trace: bool, marks: bool) -> None:
        if self.trace is not None:
            self.trace.stop()
        self.trace, self._mark, self._epochs_before = None, None, self._epochs
        if not trace and not marks:
            return
        if is_loader(source):
            count = counter_of_items(source)
            self.trace = LoaderTrace(source, marks_only=not trace, lines=trace, begin=self.begin, count=count)
        else:
            self.trace = IterableTrace(source, count_samples, marks_only=not trace)

    def _begin(self, source: Any, *, watch: bool) -> Iterator[Any]:
        """Begin the epoch, and find the processes that it starts."""
        self._find_gpus()
        if self.trace is None:
            batches = self.begin(source)
        else:
            batches = self.trace.batches()
            self.trace.follow(None)
        self._pids = _pids_of(batches) if is_loader(source) else ()
        self._starts_later = weakref.ref(batches) if self.known.workers and isgenerator(batches) else None
        self._under_way, self._watch_blocked = True, watch
        return batches

    def _find_gpus(self) -> None:
        if self.gpus or not uses_cuda():
            return
        from loaderbench.consumers.cuda import visible_gpus

        self.gpus, self.no_gpu = visible_gpus()
        self.watch_gpus(self.gpus)

    def watch_gpus(self, gpus: Sequence[Gpu]) -> None:
        """Start reading those of the GPUs that this process uses, from the next epoch on."""
        self.gpu_monitor = GpuMonitor(gpus)
        self.gpu_thread = GpuThread(
            self.gpu_monitor,
            time.perf_counter,
            interval_s=GPU_INTERVAL_S,
            which=_which_gpus,
            describe=True,
        )

    @property
    def window(self) -> tuple[float, float]:
        """Start and end of the steady state; of the entire loop, if it was not longer than its warm-up."""
        return self._steady_at_s, self._ended_s

    @property
    def described_gpus(self) -> tuple[Gpu, ...]:
        """All visible GPUs, with the details that the driver has reported so far."""
        return self.gpu_thread.gpus or self.gpus


def _which_gpus() -> tuple[int, ...] | None:
    """GPUs to read, checked in the reading thread. Only the loop's thread knows devices without torch memory."""
    with suppress(RuntimeError):
        return cuda_devices_with_memory() or None
    return None


def _pids_of(batches: Any) -> tuple[int, ...]:
    """The worker processes of torch's iterator, also if an iterator or a generator of the user's holds it."""
    return tuple(worker.pid for worker in _workers_of(batches) if worker.pid)


def _workers_of(batches: Any) -> Sequence[Any]:
    within = [batches]
    for _ in range(_MOST_WITHIN):
        known = next((found for one in within if isinstance(found := getattr(one, "_workers", None), list)), None)
        if known is not None:
            return known
        within = [held for one in within for held in _held_iterators(one)]
    return ()


def _held_iterators(holder: Any) -> list[Any]:
    """The iterators in an object's attributes; or in the frame of a generator, and inside a C iterator."""
    held = [*getattr(holder, "__dict__", {}).values()] or gc.get_referents(holder)
    frames = [one for one in held if isinstance(one, FrameType)]  # on Python 3.10
    return [one for one in (*held, *gc.get_referents(*frames)) if hasattr(type(one), "__next__")]
