"""Finds the lines where a training loop spends its time outside of the loader: another thread samples its stack.

Stacks are sampled in the parts of a step that no hook times, and between epochs. As in `lines`, a sample needs the GIL
and is taken when the training thread releases it, so the switch interval is short while stacks are sampled.
"""

from __future__ import annotations

import linecache
import random
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePath
from types import FrameType

from loaderbench.code_places import is_library, is_ours, without_collection
from loaderbench.own_threads import OwnThread
from loaderbench.records import LoopLine
from loaderbench.switch_interval import SWITCH_INTERVAL, wake_promptly
from loaderbench.tracing.clock import thread
from loaderbench.tracing.lines import LEAD_S, PROMPT_S

INTERVALS_S = (0.005, 0.05, 1.0)
"""Mean seconds between stack samples of one part of a loop: the first `EACH`, the next `EACH`, and all later ones."""

EACH = 200
FEWEST_LOOKS = 10
LONGEST_WAIT_S = 0.4  # during interpreter shutdown, threads do not end
MOST = 0.5

_TEXT_LIMIT = 200

Place = tuple[str, int]
Driver = frozenset[tuple[int, int]]
"""The calls that ask for a batch, each with its current instruction. They only drive the loop while they stay there."""


class LineTimes:
    """Seconds by line of the user's own code, in one part of a loop. A line includes the calls that it makes."""

    def __init__(self) -> None:
        self.looks, self._seconds = 0, 0.0
        self._by_line: defaultdict[Place, float] = defaultdict(float)
        self._depth: dict[Place, int] = {}

    @property
    def interval_s(self) -> float:
        """Mean seconds until the next stack sample."""
        return INTERVALS_S[min(self.looks // EACH, len(INTERVALS_S) - 1)]

    def add(self, frame: FrameType, driver: Driver) -> None:
        """Add the stack of a thread. Lines of calls that only drive the loop do not count."""
        seconds = self.interval_s
        self.looks, self._seconds = self.looks + 1, self._seconds + seconds
        lines = list(dict.fromkeys(_own_lines(frame, driver)))
        for depth, line in enumerate(reversed(lines)):
            self._by_line[line] += seconds
            self._depth[line] = max(depth, self._depth.get(line, 0))

    def merge(self, other: LineTimes) -> None:
        """Add the stack samples of another recording."""
        self.looks, self._seconds = self.looks + other.looks, self._seconds + other._seconds
        for line, seconds in other._by_line.copy().items():  # a last stack sample may still be added
            self._by_line[line] += seconds
            self._depth[line] = max(other._depth.get(line, 0), self._depth.get(line, 0))

    @property
    def why_none(self) -> str:
        """Why `busiest` finds no line."""
        if self.looks < FEWEST_LOOKS:
            return f"{self.looks or 'no'} stack samples of this part of the loop; {FEWEST_LOOKS} are needed"
        return f"no line of the script was in half of the {self.looks} stack samples"

    def busiest(self) -> LoopLine | None:
        """The innermost line with at least half of the time; `None` without one, or with few stack samples."""
        if self.looks < FEWEST_LOOKS:
            return None
        most = [line for line, seconds in self._by_line.copy().items() if seconds >= MOST * self._seconds]
        if not most:
            return None
        file, line = innermost = max(most, key=lambda one: self._depth.get(one, 0))
        return LoopLine(
            place=f"{PurePath(file).name}:{line}",
            text=linecache.getline(file, line).strip()[:_TEXT_LIMIT],
            share=min(1.0, self._by_line[innermost] / self._seconds),
            looks=self.looks,
        )


class LoopLineClock:
    """Samples the stack of one thread at a time, from `begin` to `end`. Its own thread sleeps otherwise."""

    def __init__(self) -> None:
        self._times: LineTimes | None = None
        self._paused = False
        self._ident, self._driver, self._call = 0, Driver(), 0
        self._asleep, self._over = _locked(), _locked()  # plain locks: another thread never holds a part during a fork
        self._thread: OwnThread | None = None
        self._random = random.Random(0)  # private: the user's random state stays untouched

    def begin(self, times: LineTimes, driver: Driver) -> None:
        """Sample the stack of the calling thread. If no thread can be started, nothing is recorded."""
        self._ident, self._driver, self._call, self._paused = thread(), driver, 0, False
        self._times = times
        if self._thread is None:
            self._over = _locked()
            self._thread = OwnThread("loop", self._run, self._over)
            with suppress(RuntimeError):
                self._thread.start()
        _release(self._asleep)

    def pause(self) -> None:
        """Leave out what follows, until `resume`."""
        self._paused = True

    def resume(self) -> None:
        """Continue after `pause`."""
        self._paused = False

    def enter_call(self) -> None:
        """Treat the library call in progress as part of the user's line that makes it, until `leave_call`."""
        callers = _with_callers(sys._getframe(1))
        self._call = next((id(one) for one in callers if _is_users(one.f_code.co_filename)), 0)

    def leave_call(self) -> None:
        """Look into calls again, after `enter_call`."""
        self._call = 0

    def end(self) -> None:
        """Stop sampling, until the next call of `begin`."""
        self._times = None

    def stop(self) -> None:
        """Stop sampling, and end the thread."""
        ended, self._thread, self._times = self._thread, None, None
        if ended is not None:
            self._over.release()
            _release(self._asleep)
            ended.wait(LONGEST_WAIT_S)

    def _run(self, over: threading.Lock) -> None:
        wake_promptly()
        while not over.acquire(blocking=False):
            self._asleep.acquire()
            while (times := self._times) is not None:
                until_s = times.interval_s * self._random.uniform(0.5, 1.5)
                if over.acquire(timeout=max(0.0, until_s - LEAD_S)):
                    return
                with SWITCH_INTERVAL.at_most(PROMPT_S):
                    if over.acquire(timeout=min(until_s, LEAD_S)):
                        return
                    self._look()

    def _look(self) -> None:
        """Sample the stack and drop the frame at once: it keeps alive the locals of its function and of all callers."""
        times = self._times
        if times is None or self._paused:
            return
        with without_collection():
            frame = sys._current_frames().get(self._ident)
            if frame is not None:
                call = self._call
                times.add(next((one for one in _with_callers(frame) if id(one) == call), frame), self._driver)


def _locked() -> threading.Lock:
    made = threading.Lock()
    made.acquire()
    return made


def _release(lock: threading.Lock) -> None:
    """Release a lock, unless it was released already."""
    with suppress(RuntimeError):
        lock.release()


def driver_of(frame: FrameType | None) -> Driver:
    """The calls that are in progress in a frame and its callers."""
    return frozenset((id(one), one.f_lasti) for one in _with_callers(frame))


def _own_lines(frame: FrameType, driver: Driver) -> Iterator[Place]:
    """The lines of the user's own code that run, innermost first, up to the calls that drive the loop."""
    for one in _with_callers(frame):
        file = one.f_code.co_filename
        if (id(one), one.f_lasti) in driver:
            return
        if _is_users(file):
            yield file, one.f_lineno or one.f_code.co_firstlineno


def _is_users(file: str) -> bool:
    return not is_ours(file) and not is_library(file)


def _with_callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
