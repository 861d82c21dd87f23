"""Divides a consumer's waits by the state of the awaited batch: the intersection of stalls and worker spans.

Batches arrive in the order in which they were requested. A moment of waiting for batch k belongs to the first of these
cases that applies: k was already made, and a worker is idle (transport); a later batch was already made, and a worker
is idle (order); no worker had begun k; workers are making k or later batches (making). While all workers are busy, only
more or faster work brings the next batch sooner. A worker whose part of a stream has ended is not idle: it can make no
batch. Each moment is counted once, so the parts add up to the wait.

Source: critical paths of a pipeline, as in tf.data's stall analysis (Isenko et al. 2022, "Where Is My Training
Bottleneck?", arXiv:2202.08679), with the order of torch's `DataLoader`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

Times = tuple[float, float]
"""When a batch was begun and when it was made, in seconds."""

TOLERANCE_S = 1e-3
MOST_AMISS = 0.05
"""Largest share of batches that may arrive before they were made. Above it, batches and workers are mismatched."""


@dataclass(frozen=True)
class Wait:
    """One wait: the number of the batch in its epoch, and when the wait began and ended, in seconds."""

    batch: int
    asked_s: float
    got_s: float


@dataclass
class StallSums:
    """Seconds of all waits by the state of the batch. `amiss` counts batches that arrived before they were made.

    `ended_s` is the part of all waits in which the stream of some worker had ended.
    """

    not_begun_s: float = 0.0
    making_s: float = 0.0
    order_s: float = 0.0
    after_s: float = 0.0
    ended_s: float = 0.0
    batches: int = 0
    amiss: int = 0

    def add(self, other: StallSums) -> None:
        """Add the sums of another epoch."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    @property
    def usable(self) -> bool:
        """Whether batches and workers were matched correctly."""
        return self.batches > 0 and self.amiss <= MOST_AMISS * self.batches


@dataclass(frozen=True)
class Spans:
    """The batches of one epoch by number, those of each worker in order, and the number of each worker's last one."""

    workers: int
    made: Mapping[int, Times]
    by_worker: Sequence[Sequence[Times]] = field(default_factory=tuple)
    last: Sequence[int] = field(default_factory=tuple)

    @staticmethod
    def of(workers: int, spans: Iterable[tuple[int, int, float, float]]) -> Spans:
        """Create spans from (batch, worker, began, ended), in the order of the batches."""
        made: dict[int, Times] = {}
        by_worker: list[list[Times]] = [[] for _ in range(workers)]
        last = [-1] * workers
        for batch, worker, began_s, ended_s in spans:
            made[batch] = began_s, ended_s
            by_worker[worker].append((began_s, ended_s))
            last[worker] = batch
        return Spans(workers, made, by_worker, last)

    def that_can_make(self, batch: int) -> list[Sequence[Times]]:
        """The spans of the workers that had not ended before this batch.

        Each worker is asked for one batch per cycle, so a worker without a batch for more than a cycle has ended.
        """
        pairs = zip(self.by_worker, self.last, strict=True)
        return [made for made, last in pairs if batch <= last + self.workers]


def divide_waits(waits: Sequence[Wait], spans: Spans) -> StallSums:
    """Add up the parts of all waits whose batch is known."""
    sums = StallSums()
    soonest_s = _soonest_later(spans.made)
    for wait in waits:
        if wait.batch in spans.made:
            _divide(wait, spans, soonest_s.get(wait.batch, float("inf")), sums)
    return sums


def _divide(wait: Wait, spans: Spans, later_made_s: float, sums: StallSums) -> None:
    began_s, ended_s = spans.made[wait.batch]
    sums.batches += 1
    sums.amiss += ended_s > wait.got_s + TOLERANCE_S
    asked_s, got_s = wait.asked_s, max(wait.asked_s, wait.got_s)
    ended_s = min(max(ended_s, asked_s), got_s)
    began_s = min(max(began_s, asked_s), ended_s)
    workers = spans.that_can_make(wait.batch)
    order_s = _idle_s(workers, min(max(later_made_s, asked_s), ended_s), ended_s)
    not_begun_s = min(began_s - asked_s, ended_s - asked_s - order_s)
    sums.order_s += order_s
    sums.not_begun_s += not_begun_s
    after_s = _idle_s(workers, ended_s, got_s)
    sums.after_s += after_s
    sums.ended_s += got_s - asked_s if len(workers) < spans.workers else 0.0
    sums.making_s += got_s - asked_s - order_s - not_begun_s - after_s


def _idle_s(workers: Iterable[Sequence[Times]], from_s: float, to_s: float) -> float:
    """Seconds between two moments in which the most idle of these workers had no batch to make."""
    if to_s <= from_s:
        return 0.0
    idle_s = [to_s - from_s - _busy_s(made, from_s, to_s) for made in workers]
    return max(0.0, *idle_s) if idle_s else 0.0


def _busy_s(made: Sequence[Times], from_s: float, to_s: float) -> float:
    place = max(0, bisect_left(made, (from_s, from_s)) - 1)
    busy_s = 0.0
    for began_s, ended_s in made[place:]:
        if began_s >= to_s:
            break
        busy_s += max(0.0, min(ended_s, to_s) - max(began_s, from_s))
    return busy_s


def _soonest_later(made: Mapping[int, Times]) -> dict[int, float]:
    """For each batch, when the first of all later batches was made."""
    found, soonest_s = {}, float("inf")
    for number in sorted(made, reverse=True):
        found[number] = soonest_s
        soonest_s = min(soonest_s, made[number][1])
    return found
