"""Makes the parts of a dataset time themselves: permanently in a worker, else only while a batch is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loaderbench.tracing import active, block as layout, hooks
from loaderbench.tracing.batch_choice import BatchChoice
from loaderbench.tracing.clock import now_s
from loaderbench.tracing.parts import Parts
from loaderbench.tracing.timed_class import move_new_attributes, set_class, timed_class
from loaderbench.tracing.tracer import Tracer


def patch_classes(parts: Parts) -> list[str]:
    """Patch timed methods into the dataset's classes, in a worker process.

    Returns the names of the classes that refused the patch.
    """
    refused, done = [], set()
    for found, methods in parts.objects:
        base = type(found)
        if base in done:
            continue
        done.add(base)
        if hasattr(base, "__torch_function__"):  # a tensor: all tensors would be timed
            refused.append(base.__name__)
            continue
        try:
            for name, method in methods.items():
                setattr(base, name, method)
        except TypeError:
            refused.append(base.__name__)
    _swap_held(parts, timed=True)
    return refused


class Attachment:
    """Times objects in the user's process by temporarily changing their class to a timed subclass.

    The swap changes neither the original classes nor the objects' attributes. Attributes that code sets through
    `type(self)` reach the original class in `detach`. Objects that cannot change class (a base class would notice, or
    the class is written in C) are left alone.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._classes: dict[type, type] = {}
        self._pairs = list(self._timed_classes())
        self._members = {timed: frozenset(vars(timed)) for timed in self._classes.values()}

    def attach(self) -> None:
        """Start timing the objects and functions."""
        for found, base, timed in self._pairs:
            if type(found) is base:
                set_class(found, timed)
        _swap_held(self._parts, timed=True)

    def detach(self) -> None:
        """Restore the original classes and functions."""
        for found, base, timed in self._pairs:
            if type(found) is timed:
                set_class(found, base)
        for base, timed in self._classes.items():
            if len(vars(timed)) != len(self._members[timed]):
                move_new_attributes(timed, base, self._members[timed])
        _swap_held(self._parts, timed=False)

    def holds(self, found: Any) -> bool:
        """Whether this object is among those that can be timed."""
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


def _swap_held(parts: Parts, *, timed: bool) -> None:
    """Swap the dataset's functions for their timed versions, or back."""
    for held in parts.held:
        before, after = (held.original, held.replacement) if timed else (held.replacement, held.original)
        try:
            if held.holder[held.key] is before:
                held.holder[held.key] = after
        except LookupError:  # the user removed the function
            continue


class InProcess:
    """Iterator that traces the dataset and patches library functions only while a batch is being loaded.

    `choice` selects the batches to trace; without it, all are traced.
    """

    def __init__(
        self,
        batches: Iterator[Any],
        tracer: Tracer,
        attachment: Attachment | None,
        *,
        hooked: bool,
        choice: BatchChoice | None = None,
    ) -> None:
        self._batches, self._tracer, self._attachment, self._hooked = batches, tracer, attachment, hooked
        self._choice = choice

    def __iter__(self) -> InProcess:
        return self

    def __next__(self) -> Any:
        choice = self._choice
        if choice is not None and choice.leaves_out():
            return self._left_out()
        if not self._tracer.block.header[layout.ENABLED]:
            return next(self._batches)
        return self._traced() if choice is None else self._traced_with_cost(choice)

    def _traced_with_cost(self, choice: BatchChoice) -> Any:
        """Trace a batch, and report what tracing cost before the batch is loaded, at its end, and after it."""
        asked_s = now_s()
        self._began_s = self._ended_s = asked_s
        try:
            return self._traced()
        finally:
            choice.traced(asked_s, self._began_s - asked_s + self._tracer.batch_cost_s + now_s() - self._ended_s)

    def _traced(self) -> Any:
        self._tracer.bind()  # the caller can be a prefetching thread
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
        """Load a batch and record only its duration. Its stacks are still sampled."""
        outer = active.set_tracer(None)
        try:
            return self._tracer.left_out(self._batches)
        finally:
            if outer is not None:
                active.set_tracer(outer)

    def _begin(self) -> None:
        if self._attachment:
            self._attachment.attach()
        if self._hooked:
            hooks.install()

    def _end(self) -> None:
        if self._hooked:
            hooks.remove()
        if self._attachment:
            self._attachment.detach()
