"""Times code around a loader: iterators that take its batches and pass them on, such as a generator that converts them.

The outermost one is found on the stack when the loader is asked for a batch. Until the next request, Python reports
every call and return (`sys.setprofile`). That slows the step down, so only some steps are timed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from inspect import CO_GENERATOR
from types import CodeType, FrameType
from typing import Any

from loaderbench.code_places import shown_path

MOST_EVENTS = 200_000
"""Calls and returns in one step. Counting one takes a few tenths of a microsecond. Steps with more are not timed."""

_OUR_OWN = __name__.partition(".")[0] + "."


class IteratorsAround:
    """Calls `enter` when the outermost iterator around a loader starts to work, and `leave` when it passes on a batch.

    An iterator that calls a model or an optimizer is the training loop itself and does not count. Nor does one that
    yields nothing between two batches of the loader.
    """

    def __init__(self, enter: Callable[[], None], leave: Callable[[], None]) -> None:
        self._enter, self._leave = enter, leave
        self._others: set[CodeType] = set()
        self._code: CodeType | None = None
        self._depth = self._yielded = self._events = 0
        self._calls_too_much = False

    @property
    def place(self) -> str:
        """The outermost iterator of the latest step that was timed; empty without one."""
        code = self._code
        if code is None:
            return ""
        return f"{code.co_name} ({shown_path(code.co_filename, '')}:{code.co_firstlineno})"

    def begin(self, asks: FrameType) -> None:
        """Start a step, whose batch this frame asked for. Nothing is timed if the script has set a profile function."""
        found = [code for code in _iterators(asks) if code not in self._others]
        if not found or self._calls_too_much or sys.getprofile() is not None:
            return
        self._code, self._depth = found[-1], found.count(found[-1])
        self._yielded = self._events = 0
        self._enter()
        sys.setprofile(self._follow)

    def model_called(self) -> None:
        """Exclude the iterator if the call came from within it."""
        if self._depth and self._code is not None:
            self._others.add(self._code)
            self._stop()

    def end(self, *, next_is_asked_for: bool) -> bool:
        """End the step; return whether its times can be used."""
        code = self._code
        if code is not None and next_is_asked_for and not self._yielded and not self._calls_too_much:
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
        """Python calls this for every call and return in this thread."""
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
                self._yielded += 1
                self._leave()
        elif event == "call":
            self._depth += 1
            if self._depth == 1:
                self._enter()


def _iterators(frame: FrameType | None) -> Iterator[CodeType]:
    """Running generators and `__next__` methods, the innermost first, except our own."""
    while frame is not None:
        code = frame.f_code
        is_iterator = code.co_flags & CO_GENERATOR or code.co_name == "__next__"
        if is_iterator and not str(frame.f_globals.get("__name__", "")).startswith(_OUR_OWN):
            yield code
        frame = frame.f_back
