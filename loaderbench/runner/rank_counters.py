"""Shared-memory counters with which the ranks of a trial agree on one window to measure.

A warm rank continues until all are warm, and a rank that has measured enough continues until all have, so no rank is
measured while another is idle. Ranks that step together also end after the same step; otherwise one would hang.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from loaderbench.consumers import Consumer
from loaderbench.recorder import Rules

_GOT, _DONE, _WARM, _ENOUGH, _LEFT, _PID, _EACH = range(7)
_AT_ONCE = -1.0

AHEAD = 4
"""Maximum steps between ranks that step together: the host can run two steps ahead of its device."""


class RankCounters:
    """A few doubles per rank, which only that rank writes, plus the last step of all ranks; initially 0."""

    def __init__(self, memory: Any, ranks: int) -> None:
        self._memory, self.ranks = memory, ranks

    @staticmethod
    def size(ranks: int) -> int:
        """The number of doubles needed."""
        return _EACH * ranks + 1

    def begin(self, rank: int, pid: int) -> None:
        """Record the process ID of this rank."""
        self._set(rank, _PID, pid)

    def got(self, rank: int) -> None:
        """Count a batch that this rank has received."""
        self._memory[_EACH * rank + _GOT] += 1

    def done(self, rank: int, steps: int) -> None:
        """Record how many steps this rank has finished."""
        self._set(rank, _DONE, steps)

    def is_warm(self, rank: int) -> bool:
        """Record that this rank is warm; return whether all are."""
        self._set(rank, _WARM, 1)
        return self.all_warm()

    def all_warm(self) -> bool:
        """Whether every rank is warm or has left."""
        return all(self._any_of(_WARM, _LEFT))

    def has_enough(self, rank: int) -> None:
        """Record that this rank has measured enough."""
        self._set(rank, _ENOUGH, 1)

    def may_end(self, rank: int, steps: int) -> bool:
        """Whether this rank may end after `steps` steps. The first rank that has not left decides for all."""
        if not self._memory[-1] and all(self._any_of(_ENOUGH, _LEFT)):
            present = [other for other, left in enumerate(self._column(_LEFT)) if not left]
            if rank == present[0]:
                self._memory[-1] = steps + AHEAD if self._in_step(present) else _AT_ONCE
        return bool(self._memory[-1]) and steps >= self._memory[-1]

    def leave(self, rank: int) -> None:
        """Record that this rank takes no more batches, so the others do not wait for it."""
        self._set(rank, _LEFT, 1)

    def progress(self, rank: int) -> tuple[float, float]:
        """The batches that a rank has received, and the steps it has finished."""
        return self._memory[_EACH * rank + _GOT], self._memory[_EACH * rank + _DONE]

    @property
    def pids(self) -> list[int]:
        """The process ID of each rank; 0 for a rank that has not started."""
        return [int(pid) for pid in self._column(_PID)]

    def _in_step(self, present: Sequence[int]) -> bool:
        done = [self._column(_DONE)[rank] for rank in present]
        return len(done) > 1 and max(done) - min(done) <= AHEAD

    def _any_of(self, *places: int) -> list[bool]:
        return [any(found) for found in zip(*(self._column(place) for place in places), strict=True)]

    def _column(self, place: int) -> list[float]:
        return list(self._memory[place : _EACH * self.ranks : _EACH])

    def _set(self, rank: int, place: int, value: float) -> None:
        self._memory[_EACH * rank + place] = value


@dataclass(frozen=True, kw_only=True)
class JointRules(Rules):
    """The rules of one rank: the usual rules of a trial, once they hold in all ranks, which end at the same step."""

    in_complete_epochs: ClassVar[bool] = False
    own: Rules
    rank_counters: RankCounters
    rank: int

    @classmethod
    def of(cls, own: Rules, rank_counters: RankCounters, rank: int) -> JointRules:
        """Make the rules for one rank."""
        return cls(
            **{one.name: getattr(own, one.name) for one in fields(Rules)},
            own=own,
            rank_counters=rank_counters,
            rank=rank,
        )

    def warmed_up(self, moments_s: Sequence[float]) -> bool:
        """Whether this rank and all others are warm."""
        self.rank_counters.done(self.rank, len(moments_s))
        return self.rank_counters.is_warm(self.rank) if self.own.warmed_up(moments_s) else False

    def closed(self, moments_s: Sequence[float], warmup: int) -> bool:
        """Whether all ranks have measured enough and this one has reached the last common step."""
        self.rank_counters.done(self.rank, len(moments_s))
        if self.own.closed(moments_s, warmup):
            self.rank_counters.has_enough(self.rank)
        return self.rank_counters.may_end(self.rank, len(moments_s))


class CountedConsumer:
    """Wraps a consumer to count each batch before it is consumed. `first` is called with the first batch."""

    def __init__(
        self, consumer: Consumer, rank_counters: RankCounters, rank: int, first: Callable[[Any], None]
    ) -> None:
        self._consumer, self._rank_counters, self._rank = consumer, rank_counters, rank
        self._first: Callable[[Any], None] | None = first
        self.wait_clock = consumer.wait_clock

    def consume(self, batch: Any, samples: int) -> None:
        """Count and consume one batch."""
        self._rank_counters.got(self._rank)
        if self._first is not None:
            self._first(batch)
            self._first = None
        self._consumer.consume(batch, samples)
