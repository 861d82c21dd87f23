"""At which lines of the user's code a thread loads: another thread looks now and then.

A look needs the interpreter's lock, so it comes when the thread gives that up: within a compiled function that does, or
at its return to the line that called it. Either way the line is that of the call. Python code gives it up when it has
been asked to for a switch interval, 5 ms by default: a look that comes so late would mostly find the next call.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from types import FrameType

from loaderbench.code_places import is_library, is_ours
from loaderbench.tracing import block as layout
from loaderbench.tracing.block import Block, CodeLine
from loaderbench.tracing.clock import thread

INTERVAL_S = 0.02
SWITCH_S = 0.0001
"""The switch interval while threads are looked at."""

_FETCH = os.path.join("torch", "utils", "data", "_utils", "fetch.py")  # noqa: PTH118 - the end of a path, as text


class LineClock:
    """Looks at the thread that calls `begin` until `end`, and counts in a block where it was below the fetcher."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._places: dict[CodeLine, int] = {line: place for place, line in enumerate(block.lines())}
        self._random = random.Random(0)  # its own: the user's generators stay untouched
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Look from now on; where no further thread may be started, nothing is seen."""
        self.end()
        self._done = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(thread(), self._done), name="loaderbench-lines", daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None

    def end(self) -> None:
        """Look no more; returns when the thread has ended and the process may fork."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(10 * INTERVAL_S)  # while the interpreter ends, no thread does any more
            self._thread = None

    def _run(self, of: int, done: threading.Event) -> None:
        while not done.wait(INTERVAL_S * self._random.uniform(0.5, 1.5)):
            frame = sys._current_frames().get(of)
            if frame is not None and self._block.header[layout.ENABLED]:
                self._look(frame)

    def _look(self, frame: FrameType) -> None:
        line = line_of(frame)
        if line is None:
            return
        place = self._places.get(line)
        if place is None:
            if len(self._places) == layout.LINES:
                return
            place = self._places[line] = self._block.add_line(line)
        self._block.line_looks[place] += 1


def line_of(frame: FrameType) -> CodeLine | None:
    """The innermost line of the user's own code below the fetcher, else the innermost of all; `None` above it."""
    own: FrameType | None = None
    innermost: FrameType | None = None
    below, before = "", ""
    here: FrameType | None = frame
    while here is not None and not here.f_code.co_filename.endswith(_FETCH):
        file = here.f_code.co_filename
        if not is_ours(file):
            innermost = innermost or here
            if own is None and not is_library(file):
                own, below = here, before
            before = _name(here)
        here = here.f_back
    found = own or innermost
    if here is None or found is None:
        return None
    return CodeLine(found.f_code.co_filename, found.f_lineno, _name(found), below)


def _name(frame: FrameType) -> str:
    """With its class, from Python 3.11 on."""
    return str(getattr(frame.f_code, "co_qualname", frame.f_code.co_name))
