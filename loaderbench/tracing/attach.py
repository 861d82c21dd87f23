"""Makes the parts of a dataset time themselves: in a worker for good, in the user's process while a batch is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loaderbench.switch_interval import SWITCH_INTERVAL
from loaderbench.tracing import active, block as layout, hooks
from loaderbench.tracing.batch_choice import BatchChoice
from loaderbench.tracing.clock import now_s
from loaderbench.tracing.parts import Parts
from loaderbench.tracing.timed_class import set_class, timed_class
from loaderbench.tracing.tracer import Tracer


def patch_classes(parts: Parts) -> list[str]:
    """In a worker, whose process is its own: give the classes their timed methods. Returns which could not be."""
    refused, done = [], set()
    for found, methods in parts.objects:
        base = type(found)
        if base in done:
            continue
        done.add(base)
        try:
            for name, method in methods.items():
                setattr(base, name, method)
        except TypeError:
            refused.append(base.__name__)
    _hold(parts, timed=True)
    return refused


class Attachment:
    """In the user's process: objects change their class for a timed subclass of it, and change back.

    Neither the classes nor what the objects hold is changed for it. Objects that cannot (a metaclass or a base class
    that would notice, a class in C) stay as they are.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._classes: dict[type, type] = {}
        self._pairs = list(self._timed_classes())

    def attach(self) -> None:
        """Time what is called from now on."""
        for found, base, timed in self._pairs:
            if type(found) is base:
                set_class(found, timed)
        _hold(self._parts, timed=True)

    def detach(self) -> None:
        """Be as before."""
        for found, base, timed in self._pairs:
            if type(found) is timed:
                set_class(found, base)
        _hold(self._parts, timed=False)

    def holds(self, found: Any) -> bool:
        """Whether an object can be timed."""
        return any(own is found for own, _, _ in self._pairs)

    def _timed_classes(self) -> Iterator[tuple[Any, type, type]]:
        for found, methods in self._parts.objects:
            base = type(found)
            try:
                timed = self._classes.get(base) or timed_class(base, methods)
                set_class(found, timed)
                set_class(found, base)
            except TypeError:
                continue
            self._classes[base] = timed
            yield found, base, timed


def _hold(parts: Parts, *, timed: bool) -> None:
    """Put functions in place of those that are held, or those back."""
    for held in parts.held:
        before, after = (held.original, held.replacement) if timed else (held.replacement, held.original)
        try:
            if held.holder[held.key] is before:
                held.holder[held.key] = after
        except LookupError:  # the user took it away
            continue


class InProcess:
    """The dataset's parts are timed, and functions of libraries replaced, while a batch is made, and not longer.

    `switch_s` is the interpreter's switch interval for that time; `None` leaves it. `choice` says which batches are
    traced; without one, all are.
    """

    def __init__(
        self,
        batches: Iterator[Any],
        tracer: Tracer,
        attachment: Attachment | None,
        *,
        hooked: bool,
        switch_s: float | None = None,
        choice: BatchChoice | None = None,
    ) -> None:
        self._batches, self._tracer, self._attachment, self._hooked = batches, tracer, attachment, hooked
        self._switch_s, self._looks = switch_s, False
        self._choice = choice

    def __iter__(self) -> InProcess:
        return self

    def __next__(self) -> Any:
        choice = self._choice
        if choice is not None and choice.leaves_out():
            return self._left_out()
        if not self._tracer.block.header[layout.ENABLED]:
            return next(self._batches)
        return self._traced() if choice is None else self._chosen(choice)

    def _chosen(self, choice: BatchChoice) -> Any:
        """Trace a batch, and measure what that costs before the batch is made, at its end, and after it."""
        asked_s = now_s()
        self._began_s = self._ended_s = asked_s
        try:
            return self._traced()
        finally:
            choice.traced(asked_s, self._began_s - asked_s + self._tracer.batch_cost_s + now_s() - self._ended_s)

    def _traced(self) -> Any:
        self._tracer.bind()  # a thread that prefetches may take the batches
        self._tracer.count_left_out()
        outer = active.set_tracer(self._tracer)
        try:
            self._begin()
            self._began_s = now_s()
            return next(self._batches)
        finally:
            self._ended_s = now_s()
            self._end()
            active.set_tracer(outer)

    def _left_out(self) -> Any:
        """Count a batch by its length only. Lines are looked at all the same where a look can come before it ends."""
        outer, tracer = active.set_tracer(None), self._tracer
        try:
            if self._switch_s is not None and tracer.left_out_s > self._switch_s:
                self._begin_looks()
            return tracer.left_out(self._batches)
        finally:
            self._end_looks()
            if outer is not None:
                active.set_tracer(outer)

    def _begin(self) -> None:
        if self._attachment:
            self._attachment.attach()
        if self._hooked:
            hooks.install()
        self._begin_looks()

    def _end(self) -> None:
        self._end_looks()
        if self._hooked:
            hooks.remove()
        if self._attachment:
            self._attachment.detach()

    def _begin_looks(self) -> None:
        if self._switch_s is not None:
            SWITCH_INTERVAL.begin(self._switch_s)
            self._looks = True

    def _end_looks(self) -> None:
        if self._switch_s is not None and self._looks:
            self._looks = False
            SWITCH_INTERVAL.end(self._switch_s)
