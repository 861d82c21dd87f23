"""Times code around a loader: iterators that take its batches and hand them on, such as a generator that converts them.

The loop asks the outermost of them. It is found on the stack when it asks for a batch. Python then reports each call
and each return, by `sys.setprofile`, until the next request. That makes a step slower, so it is done in some only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from inspect import CO_GENERATOR
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from loaderbench.code_places import shown_path

MOST_EVENTS = 200_000
"""Calls and returns in one step. Each takes some tenths of a microsecond to count, and no step of more is timed."""

_OUR_OWN = __name__.partition(".")[0] + "."


class IteratorsAround:
    """Calls `enter` when the outermost iterator around a loader begins to work, and `leave` when it hands on a batch.

    An iterator that calls a model or an optimizer is the training loop itself, and not counted. Neither is one that
    hands on nothing between two batches of the loader.
    """

    def __init__(self, enter: Callable[[], None], leave: Callable[[], None]) -> None:
        self._enter, self._leave = enter, leave
        self._others: set[CodeType] = set()
        self._code: CodeType | None = None
        self._depth = self._handed_on = self._events = 0
        self._calls_too_much = False

    @property
    def place(self) -> str:
        """The outermost iterator of the latest step that was timed; empty without one."""
        code = self._code
        if code is None:
            return ""
        return f"{code.co_name} in {shown_path(code.co_filename, str(Path.cwd()))}:{code.co_firstlineno}"

    def begin(self, asks: FrameType) -> None:
        """A step begins whose batch this frame asked for. Where the script itself is profiled, nothing is timed."""
        found = [code for code in _iterators(asks) if code not in self._others]
        if not found or self._calls_too_much or sys.getprofile() is not None:
            return
        self._code, self._depth = found[-1], found.count(found[-1])
        self._handed_on = self._events = 0
        self._enter()
        sys.setprofile(self._follow)

    def model_called(self) -> None:
        """In the step that is timed."""
        if self._depth and self._code is not None:
            self._others.add(self._code)
            self._stop()

    def end(self, *, next_is_asked_for: bool) -> bool:
        """The step is over; return whether it may be counted: what an iterator took in it is known."""
        code = self._code
        if code is not None and next_is_asked_for and not self._handed_on and not self._calls_too_much:
            self._others.add(code)
        counts = code is None or not (code in self._others or self._calls_too_much)
        self._stop()
        self._code = None
        return counts

    def _stop(self) -> None:
        if sys.getprofile() == self._follow:
            sys.setprofile(None)
        self._depth = 0

    def _follow(self, frame: FrameType, event: str, _: Any) -> None:
        """Called by Python for every call and return in this thread."""
        self._events += 1
        if self._events > MOST_EVENTS:
            self._calls_too_much = True
            self._stop()
            return
        if frame.f_code is not self._code:
            return
        if event == "return":
            self._depth -= 1
            if not self._depth:
                self._handed_on += 1
                self._leave()
        elif event == "call":
            self._depth += 1
            if self._depth == 1:
                self._enter()


def _iterators(frame: FrameType | None) -> Iterator[CodeType]:
    """Generators, and methods `__next__`, that are at work, the innermost first; none of ours."""
    while frame is not None:
        code = frame.f_code
        is_iterator = code.co_flags & CO_GENERATOR or code.co_name == "__next__"
        if is_iterator and not str(frame.f_globals.get("__name__", "")).startswith(_OUR_OWN):
            yield code
        frame = frame.f_back
