"""At which lines of code a thread loads: another thread looks at its stack now and then.

A look needs the interpreter's lock, so it comes when the thread gives that up: within a compiled function that does, or
at its return to the line that called it. Either way the line is that of the call. Python code gives it up when it has
been asked to for a switch interval, 5 ms by default: a look that comes so late would mostly find the next call.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType

from loaderbench.code_places import CodeFrame, is_ours
from loaderbench.tracing import block as layout
from loaderbench.tracing.block import NOBODY, SeenFrame, fitted
from loaderbench.tracing.clock import IDLE, thread
from loaderbench.tracing.tracer import Tracer

INTERVAL_S = 0.04
FREQUENT_LOOKS = 250
RARE_INTERVAL_S = 0.16
"""Mean time between looks at a process; there are fewer once there are some hundreds, because they cost CPU time."""

SWITCH_S = 0.0001
"""The switch interval while threads are looked at."""

DEEPEST = 48
"""Frames of a stack, from the fetcher down; those below are charged to the last of them."""

_FETCH = os.path.join("torch", "utils", "data", "_utils", "fetch.py")  # noqa: PTH118 - the end of a path, as text
_OF_FASTAI = {
    "create_batches": os.path.join("fastai", "data", "load.py"),  # noqa: PTH118
    "chunked": os.path.join("fastcore", "basics.py"),  # noqa: PTH118
}
"""Functions of fastai that ask for samples, and the ends of their files."""


class LineClock:
    """Looks at the thread that calls `begin` until `end`, and counts its stacks below the fetcher in a tracer's block.

    Each stack is kept under the stage that the tracer is in, with the seconds that it stands for: the mean interval
    between looks.
    """

    def __init__(self, tracer: Tracer) -> None:
        self._tracer, self._block = tracer, tracer.block
        self._places = {seen: place for place, seen in enumerate(self._block.frames())}
        self._known: dict[tuple[int, int, int], tuple[int | None, CodeType]] = {}
        self._random = random.Random(0)  # its own: the user's generators stay untouched
        self._looking = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Look from now on; where no further thread may be started, nothing is seen."""
        self.end()
        self._looking = threading.Lock()  # held until `end`: a lock waits at less cost than an event
        self._looking.acquire()
        self._thread = threading.Thread(
            target=self._run, args=(thread(), self._looking), name="loaderbench-lines", daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None

    def end(self) -> None:
        """Look no more; returns when the thread has ended and the process may fork."""
        ended, self._thread = self._thread, None
        if ended is not None:
            self._looking.release()
            if ended is not threading.current_thread():  # which may free the last frame of a loop, and end it by that
                ended.join(10 * INTERVAL_S)  # at shutdown of the interpreter, no thread ends

    def _run(self, of: int, looking: threading.Lock) -> None:
        while not looking.acquire(timeout=self._interval_s * self._random.uniform(0.5, 1.5)):
            if self._block.header[layout.ENABLED]:
                self._look_at(of)

    def _look_at(self, of: int) -> None:
        """Hold a frame no longer than a look takes: it keeps what its function and all callers hold."""
        with _without_collection():
            frame = sys._current_frames().get(of)
            if frame is not None:
                self._look(frame, self._stage(of))

    @property
    def _interval_s(self) -> float:
        return INTERVAL_S if self._block.header[layout.LOOKS] < FREQUENT_LOOKS else RARE_INTERVAL_S

    def _stage(self, of: int) -> str:
        """The stage that the tracer times in this thread; empty for a sample whose stages are not timed."""
        clock = self._tracer.clock
        return self._tracer.stage_of(clock.top) if clock.ident == of and clock.top != IDLE else ""

    def _look(self, frame: FrameType, stage: str) -> None:
        frames = frames_below_fetcher(frame)
        if not frames:
            return
        at: int | None = self._place(NOBODY, CodeFrame("", 0, stage))
        for one in frames:
            if at is None or (below := self._below(at, one)) is None:
                break
            at = below
        if at is not None:
            self._block.stack_s[at] += self._interval_s
            self._block.header[layout.LOOKS] += 1

    def _below(self, caller: int, frame: FrameType) -> int | None:
        """Where a frame is in the tree; the key is quick to make, and its code is kept, so that it stays unique."""
        code = frame.f_code
        key = (caller, id(code), frame.f_lasti)
        known = self._known.get(key)
        if known is None:
            place = self._place(caller, fitted(frame_of(code, frame.f_lineno or 0)))
            known = self._known[key] = (place, code)
        return known[0]

    def _place(self, caller: int, frame: CodeFrame) -> int | None:
        """Where this frame is in the tree; `None` where there is no room for it."""
        seen = SeenFrame(caller, frame)
        place = self._places.get(seen)
        if place is None and len(self._places) < layout.FRAMES:
            place = self._places[seen] = self._block.add_frame(seen)
        return place


@contextmanager
def _without_collection() -> Iterator[None]:
    """Keep Python before 3.12 from collecting garbage while it makes the frames of another thread.

    It collects where it allocates, and a finalizer may let the other thread run. That thread then frees a frame that is
    still read (segmentation fault), or starts a thread, which waits for a lock that is held here (deadlock). Source:
    CPython issue 106883.
    """
    collects = sys.version_info < (3, 12) and gc.isenabled()
    if not collects:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def frames_below_fetcher(frame: FrameType) -> list[FrameType]:
    """The frames of a thread from the fetcher of samples down, without our own; none for a thread that is above it."""
    found: list[FrameType] = []
    here: FrameType | None = frame
    while here is not None and not _is_fetcher(here.f_code):
        if not is_ours(here.f_code.co_filename):
            found.append(here)
        here = here.f_back
    return [] if here is None else found[::-1][:DEEPEST]


def _is_fetcher(code: CodeType) -> bool:
    """Whether this asks for samples, and does not make them."""
    end = _OF_FASTAI.get(code.co_name, _FETCH)
    return code.co_filename.endswith(end)


def frame_of(code: CodeType, line: int) -> CodeFrame:
    """With the class of its function, from Python 3.11 on."""
    return CodeFrame(code.co_filename, line, str(getattr(code, "co_qualname", code.co_name)))
