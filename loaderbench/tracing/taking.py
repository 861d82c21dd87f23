"""Times `next()` and the sampler in the process that takes the batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from loaderbench.tracing.batch_choice import BatchChoice
from loaderbench.tracing.clock import cpu_now_s, now_s
from loaderbench.tracing.timed_class import set_class, timed_class

COST_S = 10e-6
"""Approximate cost, in seconds, of timing one `next()` with cold CPU caches."""

_TIMED = "_is_timed_by_loaderbench"  # an attribute of a sampler's class while an epoch begins

MAX_COST_SHARE = 0.001
"""Limit on the cost of timing, as a share of the time between two batches. Only some calls are timed to stay below."""


class TakingClock:
    """Totals over calls of `next()`: their number, wall and thread CPU seconds, and the seconds spent in the sampler.

    Only some calls are timed. Each is weighted by the number of calls that it represents, which `choice` provides.
    `weight` is that number during a timed call, and 0 otherwise. Calls that return no batch are not counted.

    `starts_s` and `starts_cpu_s` are seconds until the sampler's first indices, over `starts` epochs, and in no other
    total. Some samplers draw the indices of the whole epoch then.
    """

    __slots__ = (
        "_first_start_s", "_is_timed", "_timed_kinds", "calls", "choice", "cpu_s", "sampler_s", "starts",
        "starts_cpu_s", "starts_s", "wall_s", "weight",
    )  # fmt: skip

    def __init__(self) -> None:
        self.calls, self.wall_s, self.cpu_s, self.sampler_s = 0, 0.0, 0.0, 0.0
        self.starts, self.starts_s, self.starts_cpu_s, self._first_start_s = 0, 0.0, 0.0, 0.0
        self._is_timed = False  # the sampler of the epoch that began last
        self.choice, self.weight = BatchChoice(MAX_COST_SHARE), 0
        self._timed_kinds: dict[type, type] = {}

    def read(self) -> tuple[float, float, float, float]:
        """The current totals: calls, wall seconds, CPU seconds and sampler seconds."""
        return self.calls, self.wall_s, self.cpu_s, self.sampler_s

    @property
    def start_s(self) -> float | None:
        """Mean seconds until the sampler's first indices, in all epochs but the first; `None` if unknown."""
        later = self.starts - 1
        return (self.starts_s - self._first_start_s) / later if later > 0 else None

    def add_start(self, began_s: float, cpu_began_s: float, *, is_over: bool) -> None:
        """Add the time since then to the sampler's start, which `is_over` with the first indices."""
        self.starts_s += now_s() - began_s
        self.starts_cpu_s += cpu_now_s() - cpu_began_s
        if is_over:
            self.starts += 1
            self._first_start_s = self._first_start_s if self.starts > 1 else self.starts_s

    @contextmanager
    def timing_start(self, loader: Any) -> Iterator[None]:
        """Time the sampler of a loader that begins an epoch in this block, by changing the sampler's class.

        A list of indices, an object that cannot change its class, or a sampler with which another thread begins an
        epoch right now, is left alone.
        """
        sampler = getattr(loader, "batch_sampler", None)
        sampler = getattr(loader, "sampler", None) if sampler is None else sampler
        base, is_changed = type(sampler), False
        self._is_timed = False
        with suppress(AttributeError, TypeError):
            if not hasattr(base, _TIMED):
                set_class(sampler, self._timed_kind(base))
                is_changed = True
        try:
            yield
        finally:
            if is_changed:
                set_class(sampler, base)

    def _timed_kind(self, base: type) -> type:
        """A subclass of a sampler's class whose indices are timed."""
        usual = base.__iter__  # type: ignore[attr-defined]

        def __iter__(sampler: Any) -> Iterator[Any]:  # noqa: N807 - the name of the method that it replaces
            began_s, cpu_began_s = now_s(), cpu_now_s()
            indices = usual(sampler)
            self.add_start(began_s, cpu_began_s, is_over=False)
            self._is_timed = True
            return self.timed(indices)

        if base not in self._timed_kinds:
            self._timed_kinds[base] = timed_class(base, {"__iter__": __iter__, _TIMED: __iter__})
        return self._timed_kinds[base]

    def timed(self, indices: Any) -> TimedSampler:
        """Time an iterator over indices, which has returned none yet."""
        kind = _TimedStatefulSampler if has_state(indices) else TimedSampler
        return kind(indices, self)

    def follow_sampler(self, batches: Any) -> None:
        """Time the sampler of a torch iterator, if it has one that is not timed yet.

        The attribute is private to torch; an unexpected value is left alone.
        """
        indices = getattr(batches, "__dict__", {}).get("_sampler_iter")
        if hasattr(indices, "__next__") and not isinstance(indices, TimedSampler) and not self._is_timed:
            batches._sampler_iter = timed = self.timed(indices)
            timed.is_first = False  # some indices may have been drawn


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
        began_s, cpu_began_s, before_s, cpu_before_s = now_s(), cpu_now_s(), clock.starts_s, clock.starts_cpu_s
        choice.traced(began_s, COST_S)
        clock.weight = weight
        try:
            batch = next(self._batches)
        finally:
            clock.weight = 0
        clock.calls += weight
        clock.cpu_s += weight * (cpu_now_s() - cpu_began_s - (clock.starts_cpu_s - cpu_before_s))
        clock.wall_s += weight * (now_s() - began_s - (clock.starts_s - before_s))
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
    """An iterator over the indices of batches, timed for the first indices and during timed `next()` calls.

    `before_first` is called just before the first indices are drawn. The wrapper is never removed.
    """

    def __init__(self, indices: Any, clock: TakingClock) -> None:
        self._indices, self._clock = indices, clock
        self.is_first = True
        self.before_first: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        weight = self._clock.weight
        if self.is_first:
            return self._draw_first()
        if not weight:
            return next(self._indices)
        began_s = now_s()
        try:
            return next(self._indices)
        finally:
            self._clock.sampler_s += weight * (now_s() - began_s)

    def _draw_first(self) -> Any:
        self.is_first = False
        self.before_first()
        began_s, cpu_began_s = now_s(), cpu_now_s()
        try:
            return next(self._indices)
        finally:
            self._clock.add_start(began_s, cpu_began_s, is_over=True)


class NotifyingSampler:
    """A batch sampler that calls `notify` just before the first batch of indices is drawn.

    By then, persistent workers have confirmed the end of the previous epoch and received nothing of the new one.
    """

    def __init__(self, sampler: Any, clock: TakingClock, notify: Callable[[], None]) -> None:
        self._sampler, self._clock, self._notify = sampler, clock, notify

    def __iter__(self) -> Iterator[Any]:
        indices = iter(self._sampler)
        timed = indices if isinstance(indices, TimedSampler) else self._clock.timed(indices)
        timed.before_first = self._notify
        return timed


def has_state(indices: Any) -> bool:
    """Whether torchdata would save this iterator with a checkpoint: it checks for the two methods."""
    return hasattr(indices, "state_dict") and hasattr(indices, "load_state_dict")


class _TimedStatefulSampler(TimedSampler):
    """A timed iterator that is saved with a checkpoint and restored from it, like the iterator it wraps."""

    def state_dict(self) -> Any:
        """The state of the wrapped iterator."""
        return self._indices.state_dict()

    def load_state_dict(self, state: Any) -> None:
        """Restore the wrapped iterator."""
        self._indices.load_state_dict(state)
