"""Stages that a user marks, in the loop or in what runs inside the loader, and what the loop's own cost."""

from __future__ import annotations

import functools
import inspect
import threading
from collections import defaultdict
from typing import Any, Protocol

from loaderbench.errors import UsageError
from loaderbench.records import StageCost
from loaderbench.tracing import active
from loaderbench.tracing.clock import StageClock, thread

_LATE = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)


class Owner(Protocol):
    """The profiler whose loop a stage may be in."""

    marks_functions: bool

    def loop_stage(self, name: str) -> tuple[StageClock, int] | None:
        """The clock of the loop's body and the stage's number on it; `None` outside of the body."""
        ...


class Stage:
    """A context manager and a decorator. In a worker, what it marks is found by the worker's own tracer."""

    def __init__(self, owner: Owner, name: str) -> None:
        self._owner, self._name = owner, name
        self._entered = threading.local()

    def __enter__(self) -> None:
        found = self._find()
        clocks = self._entered.__dict__.setdefault("clocks", [])
        if found is not None:
            found[0].enter(found[1])
        clocks.append(found and found[0])

    def __exit__(self, *_: object) -> None:
        if (clock := self._entered.clocks.pop()) is not None and clock.ident:
            clock.leave()

    def __call__(self, function: Any) -> Any:
        """Time every call of a function or method. Raises `UsageError` for what is none, or only begins when called."""
        if isinstance(function, staticmethod | classmethod):
            return type(function)(self(function.__func__))
        if not callable(function) or isinstance(function, type | property):
            raise UsageError(f"stage({self._name!r}) marks functions and methods, not a {type(function).__name__}")
        if any(kind(function) for kind in _LATE):
            late = f"{_name(function)} runs after its call has returned; mark inside it"
            raise UsageError(f"stage({self._name!r}): {late}")
        self._owner.marks_functions = True

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            found = self._find()
            if found is None:
                return function(*args, **kwargs)
            clock, place = found
            clock.enter(place)
            try:
                return function(*args, **kwargs)
            finally:
                if clock.ident:
                    clock.leave()

        return run

    def __reduce__(self) -> Any:
        """In a worker that is sent it, it marks for the worker's own tracer."""
        return type(self), (self._owner, self._name)

    def _find(self) -> tuple[StageClock, int] | None:
        tracer = active.tracer()
        if tracer is None:
            return self._owner.loop_stage(self._name)
        return (tracer.clock, tracer.place(self._name)) if tracer.clock.ident == thread() else None


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


Seconds = defaultdict[tuple[int, str], float]


class UserStages:
    """Adds up wall and CPU seconds by stage, apart for each kind of batch, so that means are of the same batches.

    Every thread has a clock of its own, which is never set back: what it has more than last time is new.
    """

    def __init__(self) -> None:
        self._clocks: dict[int, StageClock] = {}
        self._places: dict[str, int] = {"": 0}  # "": outside of all stages
        self._told: dict[int, tuple[list[float], list[float]]] = {}
        self._wall_s: Seconds = defaultdict(float)
        self._cpu_s: Seconds = defaultdict(float)

    def find(self, name: str) -> tuple[StageClock, int]:
        """The clock of the calling thread, running, and the stage's number on it."""
        place = self._places.setdefault(name, len(self._places))
        clock = self._clocks.setdefault(thread(), StageClock())
        while len(clock.calls) <= place:
            clock.add_stage()
        if not clock.ident:
            clock.begin(0)
        return clock, place

    def end_body(self, kind: int) -> None:
        """Add what was charged since the last batch to its kind."""
        names = {place: name for name, place in self._places.items()}
        for ident, clock in list(self._clocks.items()):
            wall_s, cpu_s = clock.wall_s.copy(), clock.cpu_s.copy()
            before = self._told.get(ident, ([], []))
            for place in range(1, len(wall_s)):
                self._wall_s[kind, names[place]] += wall_s[place] - _at(before[0], place)
                self._cpu_s[kind, names[place]] += cpu_s[place] - _at(before[1], place)
            self._told[ident] = wall_s, cpu_s

    def costs(self, kind: int, batches: int) -> dict[str, StageCost]:
        """Seconds per batch of this kind."""
        found = {name: (kind, name) for name in self._places if self._wall_s.get((kind, name), 0.0) > 0}
        return {name: StageCost(self._cpu_s[at] / batches, self._wall_s[at] / batches) for name, at in found.items()}


def _at(values: list[float], place: int) -> float:
    return values[place] if place < len(values) else 0.0
