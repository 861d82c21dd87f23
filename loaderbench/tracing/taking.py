"""Times `next()` and the sampler in the process that takes the batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from loaderbench.tracing.batch_choice import BatchChoice
from loaderbench.tracing.clock import cpu_now_s, now_s

COST_S = 10e-6
"""Approximate cost, in seconds, of timing one `next()` with cold CPU caches."""

MAX_COST_SHARE = 0.001
"""Limit on the cost of timing, as a share of the time between two batches. Only some calls are timed to stay below."""


class TakingClock:
    """Totals over calls of `next()`: their number, wall and thread CPU seconds, and the seconds spent in the sampler.

    Only some calls are timed. Each is weighted by the number of calls that it represents, which `choice` provides.
    `weight` is that number during a timed call, and 0 otherwise. Calls that return no batch are not counted.
    """

    __slots__ = ("calls", "choice", "cpu_s", "sampler_s", "wall_s", "weight")

    def __init__(self) -> None:
        self.calls, self.wall_s, self.cpu_s, self.sampler_s = 0, 0.0, 0.0, 0.0
        self.choice, self.weight = BatchChoice(MAX_COST_SHARE), 0

    def read(self) -> tuple[float, float, float, float]:
        """The current totals: calls, wall seconds, CPU seconds and sampler seconds."""
        return self.calls, self.wall_s, self.cpu_s, self.sampler_s

    def follow_sampler(self, batches: Any) -> None:
        """Time the sampler of a torch iterator, if it has one.

        The attribute is private to torch; an unexpected value is left alone.
        """
        own = getattr(batches, "__dict__", {})
        if hasattr(own.get("_sampler_iter"), "__next__"):
            kind = _TimedStatefulSampler if has_state(own["_sampler_iter"]) else TimedSampler
            batches._sampler_iter = kind(own["_sampler_iter"], self)


class Taken:
    """A loader's iterator with some of its `next()` calls timed. Other attributes are the iterator's own."""

    def __init__(self, batches: Any, clock: TakingClock) -> None:
        self._batches, self._clock = batches, clock
        clock.choice.begin_epoch()
        clock.follow_sampler(batches)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        choice = self._clock.choice
        return next(self._batches) if choice.leaves_out() else self._timed(choice)

    def _timed(self, choice: BatchChoice) -> Any:
        clock, weight = self._clock, choice.weight
        began_s, cpu_began_s = now_s(), cpu_now_s()
        choice.traced(began_s, COST_S)
        clock.weight = weight
        try:
            batch = next(self._batches)
        finally:
            clock.weight = 0
        clock.calls += weight
        clock.cpu_s += weight * (cpu_now_s() - cpu_began_s)
        clock.wall_s += weight * (now_s() - began_s)
        return batch

    def __getattr__(self, name: str) -> Any:
        if name == "_batches":  # copy looks this up before it is set
            raise AttributeError(name)
        return getattr(self._batches, name)

    def __len__(self) -> int:
        return len(self._batches)

    def __bool__(self) -> bool:
        return bool(self._batches)


class TimedSampler:
    """An iterator over the indices of batches, timed during timed `next()` calls. The wrapper is never removed."""

    def __init__(self, indices: Iterator[Any], clock: TakingClock) -> None:
        self._indices, self._clock = indices, clock

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        weight = self._clock.weight
        if not weight:
            return next(self._indices)
        began_s = now_s()
        try:
            return next(self._indices)
        finally:
            self._clock.sampler_s += weight * (now_s() - began_s)


class NotifyingSampler:
    """A batch sampler that calls `notify` just before the first batch of indices is drawn.

    By then, persistent workers have confirmed the end of the previous epoch and received nothing of the new one.
    """

    def __init__(self, sampler: Any, notify: Callable[[], None]) -> None:
        self._sampler, self._notify = sampler, notify

    def __iter__(self) -> Iterator[Any]:
        indices = iter(self._sampler)
        kind = _NotifyingStatefulIndices if has_state(indices) else _NotifyingIndices
        return kind(indices, self._notify)


class _NotifyingIndices:
    """An iterator over one epoch of a `NotifyingSampler`."""

    def __init__(self, indices: Iterator[Any], notify: Callable[[], None]) -> None:
        self._indices = indices
        self._notify: Callable[[], None] | None = notify

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._notify is not None:
            self._notify()
            self._notify = None
        return next(self._indices)


def has_state(indices: Any) -> bool:
    """Whether torchdata would save this iterator with a checkpoint: it checks for the two methods."""
    return hasattr(indices, "state_dict") and hasattr(indices, "load_state_dict")


class _Stateful:
    """An iterator over indices that is saved with a checkpoint and restored from it, like the iterator it wraps."""

    _indices: Any

    def state_dict(self) -> Any:
        """The state of the wrapped iterator."""
        return self._indices.state_dict()

    def load_state_dict(self, state: Any) -> None:
        """Restore the wrapped iterator."""
        self._indices.load_state_dict(state)


class _TimedStatefulSampler(_Stateful, TimedSampler):
    """A `TimedSampler` with a state."""


class _NotifyingStatefulIndices(_Stateful, _NotifyingIndices):
    """An iterator over one epoch of a `NotifyingSampler`, with a state."""
