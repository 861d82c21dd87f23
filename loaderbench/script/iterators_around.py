"""Times code around a loader: iterators that consume its batches and yield them, such as a converting generator.

The outermost iterator is found on the stack when the loader is asked for a batch. Until the next request, Python
reports every call and return (`sys.setprofile`). That slows the step down, so only some steps are timed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from inspect import CO_GENERATOR
from types import CodeType, FrameType
from typing import Any

from loaderbench.code_places import is_library, shown_path

MOST_EVENTS = 200_000
"""Calls and returns in code around the loader, per step. Steps with more are not timed."""

LOOK_EVERY = 1000
EVENT_S, MOST_SHARE = 0.2e-6, 0.1
"""Seconds for Python to report a call or return, and the largest share of a step that the reports may take.

Beyond that share, the step is no longer followed. The check runs every `LOOK_EVERY` events of the step itself.
"""

MOST_GIVEN_UP = 3
"""Once this many steps were abandoned, no more are timed. A single one may be due to a checkpoint."""

_OUR_OWN = __name__.partition(".")[0] + "."


class IteratorsAround:
    """Calls `enter` when the outermost iterator around a loader resumes, and `leave` when it yields a batch.

    An iterator that calls a model or an optimizer is the training loop itself and does not count. An iterator that
    yields nothing between two batches of the loader does not count either. `leave_if_overdue` ends a step that takes
    too long, by calling `end`, and returns whether it did.
    """

    def __init__(
        self, enter: Callable[[], None], leave: Callable[[], None], leave_if_overdue: Callable[[], bool]
    ) -> None:
        self._enter, self._leave, self._leave_if_overdue = enter, leave, leave_if_overdue
        self._others: set[CodeType] = set()
        self._code: CodeType | None = None
        self._named: CodeType | None = None
        self._depth = self._yielded = self._events = self._events_of_step = self._given_up = 0
        self._began_s = 0.0
        self._calls_too_much = False

    @property
    def place(self) -> str:
        """The timed step's outermost iterator in the user's code, else in a library; empty if there is none."""
        code = self._named
        if self._code is None or code is None:
            return ""
        return f"{code.co_name} ({shown_path(code.co_filename, '')}:{code.co_firstlineno})"

    def begin(self, asks: FrameType) -> None:
        """Start a step whose batch `asks` requested. Nothing is timed if the script has set a profile function."""
        found = [code for code in _iterators(asks) if code not in self._others]
        if not found or self._given_up == MOST_GIVEN_UP or sys.getprofile() is not None:
            return
        self._code, self._depth = found[-1], found.count(found[-1])
        self._named = next((code for code in found[::-1] if not is_library(code.co_filename)), found[-1])
        self._yielded = self._events = self._events_of_step = 0
        self._calls_too_much, self._began_s = False, time.perf_counter()
        self._enter()
        sys.setprofile(self._on_profile_event)

    def model_called(self) -> None:
        """Exclude the iterator if the call came from within it."""
        if self._depth and self._code is not None:
            self._others.add(self._code)
            self._stop()

    def end(self, *, next_is_asked_for: bool) -> bool:
        """End the step. Returns whether its times can be used."""
        code = self._code
        if code is not None and next_is_asked_for and not self._yielded and not self._calls_too_much:
            self._others.add(code)
        counts = code is None or not (code in self._others or self._calls_too_much)
        self._stop()
        self._code = None
        return counts

    def _stop(self) -> None:
        if sys.getprofile() == self._on_profile_event:
            sys.setprofile(None)
        self._depth = 0

    def _on_profile_event(self, frame: FrameType, event: str, _: Any) -> None:
        """Profile function: Python calls it for every call and return in this thread."""
        if self._depth:
            self._events += 1
            if self._events > MOST_EVENTS:
                self._give_up()
                return
        else:
            self._events_of_step += 1
            if not self._events_of_step % LOOK_EVERY and (self._leave_if_overdue() or self._is_costly()):
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

    def _is_costly(self) -> bool:
        """Abandon the step if profiling slows it down too much. Returns whether it did."""
        is_costly = EVENT_S * self._events_of_step > MOST_SHARE * (time.perf_counter() - self._began_s)
        if is_costly:
            self._give_up()
        return is_costly

    def _give_up(self) -> None:
        self._calls_too_much = True
        self._given_up += 1
        self._stop()


def _iterators(frame: FrameType | None) -> Iterator[CodeType]:
    """Code of running generators and `__next__` methods, innermost first, except our own."""
    while frame is not None:
        code = frame.f_code
        is_iterator = code.co_flags & CO_GENERATOR or code.co_name == "__next__"
        if is_iterator and not str(frame.f_globals.get("__name__", "")).startswith(_OUR_OWN):
            yield code
        frame = frame.f_back
