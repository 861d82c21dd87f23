"""A thread that reads GPUs: a slow driver delays neither other monitors nor a user's loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

from loaderbench.monitors.gpu import Clock, GpuMonitor, GpuReading, Seen
from loaderbench.own_threads import OwnThread
from loaderbench.records import Gpu

INTERVAL_S = 0.1
IDLE_SHARE = 4  # a slow reading is followed by a pause this many times as long, at most MAX_PAUSE_S
MAX_PAUSE_S = 1.0
PATIENCE_S = 0.02  # how long `end` waits for a reading in progress
MAX_READINGS = 4_000


@dataclass(frozen=True)
class Pause:
    """Time without readings, on the clock of the readings."""

    from_s: float
    to_s: float


class GpuThread:
    """Reads GPUs between `begin` and `end`, which can be called repeatedly. Results are in `readings`.

    `pauses` are the times from each `end` to the next `begin`, in ascending order.

    `which` returns the devices to read, or `None` for all; the thread calls it each time it begins. When there are too
    many readings, half of them are dropped and the interval is doubled. `gpus` are the devices, set after the first
    reading if `describe` is true.
    """

    def __init__(
        self,
        monitor: GpuMonitor,
        clock: Clock = time.monotonic,
        *,
        interval_s: float = INTERVAL_S,
        which: Callable[[], Collection[int] | None] = lambda: None,
        describe: bool = False,
    ) -> None:
        self.gpus: tuple[Gpu, ...] | None = None
        self.readings: list[GpuReading] = []
        self.pauses: list[Pause] = []
        self.cpu_s = 0.0
        self._monitor, self._clock, self._interval_s, self._which = monitor, clock, interval_s, which
        self._describe = describe
        self._seen: Seen = {}
        self._due_s = 0.0
        self._ended_s: float | None = None
        self._done = threading.Event()
        self._thread: OwnThread | None = None

    def begin(self) -> None:
        """Start reading. If no thread can be started, nothing is read."""
        if self._monitor.has_gpus:
            began_s = self._clock()
            if self._ended_s is not None:
                self.pauses.append(Pause(self._ended_s, began_s))
                self._ended_s = None
            self._done = done = threading.Event()
            self._thread = OwnThread("gpus", self._run, done, began_s)
            with suppress(RuntimeError):
                self._thread.start()

    def end(self) -> None:
        """Stop reading. A slow call is not waited for, and no call follows it."""
        self._done.set()
        if self._thread is not None:
            self._ended_s = self._clock()
        ended, self._thread = self._thread, None
        if ended is not None:
            ended.wait(PATIENCE_S)

    def _run(self, done: threading.Event, not_before_s: float) -> None:
        only, cpu_s = self._which(), self.cpu_s
        while not done.wait(max(0.0, self._due_s - self._clock())):
            began_s = self._clock()
            readings = self._monitor.read(
                self._clock, seen=self._seen, only=only, is_over=done.is_set, not_before_s=not_before_s
            )
            self.readings.extend(readings)
            if self._describe and self.gpus is None:
                gpus = self._monitor.described(done.is_set)
                self.gpus = None if done.is_set() else gpus
            took_s = self._clock() - began_s
            self._due_s = began_s + took_s + max(self._interval_s - took_s, min(IDLE_SHARE * took_s, MAX_PAUSE_S))
            self.cpu_s = cpu_s + time.thread_time()
            if len(self.readings) > MAX_READINGS:
                self._thin_out()

    def _thin_out(self) -> None:
        """Keep every second reading of each device."""
        kept: list[GpuReading] = []
        count: dict[int, int] = {}
        for reading in self.readings:
            count[reading.index] = count.get(reading.index, 0) + 1
            kept += [reading] if count[reading.index] % 2 else []
        self.readings = kept
        self._interval_s *= 2
