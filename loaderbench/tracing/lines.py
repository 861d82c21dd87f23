"""Finds the lines of code where a thread spends its loading time: another thread samples its stack.

A stack sample needs the GIL, so it is taken when the loading thread releases the GIL: inside a compiled function that
does, or on return to the line that called the function. Either way, the line is that of the call. Python code releases
the GIL once another thread has waited for a switch interval, 5 ms by default. A stack sample that late would mostly
find the next call, so the interval is much shorter for a moment before each stack sample.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from types import CodeType, FrameType

from loaderbench.code_places import CodeFrame, is_ours, without_collection
from loaderbench.own_threads import OwnThread
from loaderbench.switch_interval import SWITCH_INTERVAL, wake_promptly
from loaderbench.tracing import block as layout
from loaderbench.tracing.block import NOBODY, SeenFrame, fitted
from loaderbench.tracing.clock import IDLE, thread
from loaderbench.tracing.hooks import TimedFile
from loaderbench.tracing.tracer import Tracer

INTERVAL_S = 0.04
FREQUENT_LOOKS = 250
RARE_INTERVAL_S = 0.16
"""Mean seconds between stack samples of a process, after the first `FREQUENT_LOOKS`: they cost CPU time."""

SWITCH_S = 1e-4
"""The interpreter's switch interval, in seconds, in a worker whose stacks are sampled."""

PROMPT_S = 1e-5
"""The interpreter's switch interval, in seconds, when a stack is sampled.

A thread that waits for the GIL wakes once per interval: with 1 µs, it would use a CPU for as long as the GIL is held.
"""

LEAD_S = 0.008
"""Seconds before a stack sample at which the switch interval is shortened: longer than the usual interval.

The time of the sample is fixed before that, so it does not depend on what the loading thread was doing then.
"""

DEEPEST = 48
"""Frames kept of a stack, from the fetcher down. Time in deeper frames is charged to the last frame kept."""

_READING = {method.__code__ for method in (TimedFile.__init__, TimedFile.readinto, TimedFile.readall, TimedFile.read)}
"""Code that runs while a file is read. A read is charged to its stage only when it ends."""

_FETCH = os.path.join("torch", "utils", "data", "_utils", "fetch.py")  # noqa: PTH118 - a path suffix, as text
_OF_FASTAI = {
    "create_batches": os.path.join("fastai", "data", "load.py"),  # noqa: PTH118
    "chunked": os.path.join("fastcore", "basics.py"),  # noqa: PTH118
}
"""Functions of fastai that request samples, and the suffixes of their file paths."""


class LineClock:
    """Samples the stack of the thread that called `begin`, until `end`.

    The frames below the fetcher are added to the tracer's block, each stack under the tracer's current stage. A stack
    sample counts for the mean interval between stack samples, in seconds.
    """

    def __init__(self, tracer: Tracer) -> None:
        self._tracer, self._block = tracer, tracer.block
        self._places = {seen: place for place, seen in enumerate(self._block.frames())}
        self._known: dict[tuple[int, int, int], tuple[int | None, CodeType]] = {}
        self._random = random.Random(0)  # private: the user's random state stays untouched
        self._next_s = 0.0  # when the next stack is sampled, by the monotonic clock
        self._looking = threading.Lock()
        self._thread: OwnThread | None = None

    def begin(self) -> None:
        """Start sampling stacks. If no thread can be started, nothing is recorded."""
        self.end()
        self._looking = threading.Lock()  # held until `end`; waiting for a lock costs less than for an event
        self._looking.acquire()
        self._thread = OwnThread("lines", self._run, thread(), self._looking)
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None

    def end(self) -> None:
        """Stop sampling stacks. Returns once the sampling thread has ended and the process can fork."""
        ended, self._thread = self._thread, None
        if ended is not None:
            self._looking.release()
            ended.wait(10 * INTERVAL_S)  # at interpreter shutdown, threads do not end

    def _run(self, ident: int, looking: threading.Lock) -> None:
        wake_promptly()
        while not looking.acquire(timeout=self._until_next_s() - LEAD_S):
            if self._block.header[layout.ENABLED]:
                with SWITCH_INTERVAL.at_most(PROMPT_S):
                    if looking.acquire(timeout=max(0.0, self._next_s - time.monotonic())):
                        return
                    self._look_at(ident)

    def _until_next_s(self) -> float:
        """Draw the time of the next stack sample, and return the seconds until then."""
        until_s = self._interval_s * self._random.uniform(0.5, 1.5)
        self._next_s = time.monotonic() + until_s
        return until_s

    def _look_at(self, ident: int) -> None:
        """Sample the stack and drop the frame at once: it keeps alive the locals of its function and of all callers."""
        with without_collection():
            frame = sys._current_frames().get(ident)
            if frame is not None:
                self._look(frame, self._stage(ident, frame.f_code))

    @property
    def _interval_s(self) -> float:
        return INTERVAL_S if self._block.header[layout.LOOKS] < FREQUENT_LOOKS else RARE_INTERVAL_S

    def _stage(self, ident: int, code: CodeType) -> str:
        """The stage that the tracer times in this thread; empty for a sample whose stages are not timed.

        `code` is that of the innermost frame.
        """
        clock = self._tracer.clock
        if clock.ident != ident or clock.top == IDLE:
            return ""
        return self._tracer.stage_of(self._tracer.read if code in _READING else clock.top)

    def _look(self, frame: FrameType, stage: str) -> None:
        frames = frames_below_fetcher(frame)
        if not frames:
            return
        at: int | None = self._position(NOBODY, CodeFrame("", 0, stage))
        for one in frames:
            if at is None or (below := self._position_below(at, one)) is None:
                break
            at = below
        if at is not None:
            self._block.stack_s[at] += self._interval_s
            self._block.header[layout.LOOKS] += 1

    def _position_below(self, caller: int, frame: FrameType) -> int | None:
        """The position of a frame in the call tree.

        The key is cheap to build. The code object is kept alive, so its `id` stays unique.
        """
        code = frame.f_code
        key = (caller, id(code), frame.f_lasti)
        known = self._known.get(key)
        if known is None:
            place = self._position(caller, fitted(frame_of(code, frame.f_lineno or code.co_firstlineno)))
            known = self._known[key] = (place, code)
        return known[0]

    def _position(self, caller: int, frame: CodeFrame) -> int | None:
        """The position of a frame called by `caller` in the call tree; `None` if the tree is full."""
        seen = SeenFrame(caller, frame)
        place = self._places.get(seen)
        if place is None and len(self._places) < layout.FRAMES:
            place = self._places[seen] = self._block.add_frame(seen)
        return place


def frames_below_fetcher(frame: FrameType) -> list[FrameType]:
    """The frames of a thread from the sample fetcher down, without our own; empty if there is no fetcher."""
    found: list[FrameType] = []
    here: FrameType | None = frame
    while here is not None and not _is_fetcher(here.f_code):
        if not is_ours(here.f_code.co_filename):
            found.append(here)
        here = here.f_back
    return [] if here is None else found[::-1][:DEEPEST]


def _is_fetcher(code: CodeType) -> bool:
    """Whether this code requests samples instead of loading them."""
    end = _OF_FASTAI.get(code.co_name, _FETCH)
    return code.co_filename.endswith(end)


def frame_of(code: CodeType, line: int) -> CodeFrame:
    """The location in the code; with the function's class from Python 3.11 on."""
    return CodeFrame(code.co_filename, line, str(getattr(code, "co_qualname", code.co_name)))
