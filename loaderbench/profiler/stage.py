"""Stages that the user marks, in the loop or in code that runs inside the loader."""

from __future__ import annotations

import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, Protocol

from loaderbench.errors import UsageError
from loaderbench.tracing import active
from loaderbench.tracing.clock import StageClock, thread

if TYPE_CHECKING:
    from loaderbench.profiler.user_stages import HostAndDevice

_LATE = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)


class Owner(Protocol):
    """The profiler whose loop a stage may be part of."""

    marks_functions: bool

    def loop_stage(self, name: str) -> tuple[StageClock | HostAndDevice, int] | None:
        """The clock of the loop's body, and the stage's number on that clock; `None` outside of the body."""
        ...


class Stage:
    """A context manager and decorator that marks a stage. In a worker, the worker's own tracer times it."""

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
        """Time every call of a function or method.

        Raises `UsageError` for other objects, and for generators and coroutines, whose call only begins the work.
        """
        if isinstance(function, staticmethod | classmethod):
            return type(function)(self(function.__func__))
        if not callable(function) or isinstance(function, type | property):
            raise UsageError(f"stage({self._name!r}) expects a function or method, got {type(function).__name__}")
        if any(kind(function) for kind in _LATE):
            late = f"{_name(function)} is a generator or coroutine; use the stage inside it"
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
        """Pickle for a worker, where the stage uses the worker's own tracer."""
        return type(self), (self._owner, self._name)

    def _find(self) -> tuple[StageClock | HostAndDevice, int] | None:
        tracer = active.tracer()
        if tracer is None:
            return self._owner.loop_stage(self._name)
        return (tracer.clock, tracer.place(self._name)) if tracer.clock.ident == thread() else None


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)
