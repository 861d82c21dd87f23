"""Stages that a user marks, in the loop or in what runs inside the loader."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from loaderbench.errors import UsageError
from loaderbench.tracing import active
from loaderbench.tracing.clock import StageClock, thread

Function = TypeVar("Function", bound=Callable[..., Any])


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
        self._entered: list[StageClock | None] = []

    def __enter__(self) -> None:
        found = self._find()
        if found is None:
            self._entered.append(None)
        else:
            clock, place = found
            clock.enter(place)
            self._entered.append(clock)

    def __exit__(self, *_: object) -> None:
        if (clock := self._entered.pop()) is not None and clock.ident:
            clock.leave()

    def __call__(self, function: Function) -> Function:
        """Time every call of `function`. Raises `UsageError` for one whose call does nothing yet."""
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise UsageError(
                f"stage({self._name!r}): {function.__name__} runs after its call has returned; mark inside it"
            )
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

        return cast("Function", run)

    def _find(self) -> tuple[StageClock, int] | None:
        tracer = active.tracer
        if tracer is None:
            return self._owner.loop_stage(self._name)
        return (tracer.clock, tracer.place(self._name)) if tracer.clock.ident == thread() else None
