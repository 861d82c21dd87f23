"""Finds which worker made each batch of each epoch, when, and where its time went."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from loaderbench.tracing import block as layout
from loaderbench.tracing.block import Block

_EPOCHS = 128  # epochs remembered, more than the ring of a worker can usefully hold


@dataclass(frozen=True)
class Made:
    """One batch, made by a worker or by the main process (`worker` is `None`).

    Times are `time.perf_counter` seconds. `stages_s` are the seconds by stage of its timed samples.
    """

    worker: int | None
    began_s: float
    collate_began_s: float
    ended_s: float
    samples: int
    stages_s: dict[str, float]


class MadeBatches:
    """Finds a batch by its epoch and its number in the epoch, while the workers' blocks still hold it."""

    def __init__(self, blocks: Sequence[Block], *, in_workers: bool) -> None:
        self._blocks, self._in_workers = blocks, in_workers
        self._begun: dict[int, Sequence[int]] = {}
        self._have_more: Sequence[bool] = ()
        self.epochs = 0

    def begin_epoch(self) -> None:
        """Start an epoch: batches made from now on belong to it."""
        self.epochs += 1
        self._have_more = ()
        self.count_from_now()
        self._begun.pop(self.epochs - 1 - _EPOCHS, None)

    def count_from_now(self) -> None:
        """Assign all batches made so far to earlier epochs, such as those of an epoch that was left early."""
        self._begun[self.epochs - 1] = [int(block.header[layout.BATCHES]) for block in self._blocks]

    def follow(self, have_more: Sequence[bool]) -> None:
        """Use torch's own list for this epoch, which says for each worker whether it can make more batches."""
        self._have_more = have_more

    def find(self, epoch: int, batch: int) -> Made | None:
        """The batch with this number in torch's order; `None` if it is unknown."""
        place = place_of(batch, self._counts(epoch))
        if place is None:
            return None
        worker, turn = place
        return self.by(worker, self._begun[epoch][worker] + turn)

    def by(self, worker: int, number: int) -> Made | None:
        """The batch that a worker made after `number` others, counted over all epochs; `None` if no longer stored."""
        block = self._blocks[worker]
        return self._made(worker, number, block.span_stages()) if number in _remembered(block) else None

    def of_last_epoch(self) -> list[tuple[int, Made]]:
        """The known batches of the latest epoch in order, each with its number in the epoch."""
        return self.of_epoch(self.epochs - 1)

    def of_epoch(self, epoch: int) -> list[tuple[int, Made]]:
        """The known batches of an epoch in order, each with its number in the epoch."""
        if epoch not in self._begun:
            return []
        begun, counts = self._begun[epoch], self._counts(epoch)
        ends = self._begun.get(epoch + 1, [None] * len(begun))
        found = (
            one
            for worker, (first, end) in enumerate(zip(begun, ends, strict=True))
            for one in self._numbered(worker, first, end, counts)
        )
        return sorted(found, key=itemgetter(0))

    def _counts(self, epoch: int) -> list[float]:
        """Number of batches that each worker made in an epoch; infinite while it can make more."""
        begun, following = self._begun.get(epoch, ()), self._begun.get(epoch + 1)
        made = [int(block.header[layout.BATCHES]) for block in self._blocks] if following is None else following
        counts = [float(end - first) for first, end in zip(begun, made, strict=False)]
        if following is not None:
            return counts
        have_more = self._have_more if len(self._have_more) == len(counts) else [True] * len(counts)
        return [math.inf if more else count for count, more in zip(counts, have_more, strict=True)]

    def _numbered(
        self, worker: int, first: int, end: int | None, counts: Sequence[float]
    ) -> Iterator[tuple[int, Made]]:
        """The batches that a worker's ring still holds, from its `first` batch of an epoch to the next epoch's."""
        block = self._blocks[worker]
        known, stages = _remembered(block), block.span_stages()
        for number in range(max(first, known.start), known.stop if end is None else min(end, known.stop)):
            yield number_of(worker, number - first, counts), self._made(worker, number, stages)

    def _made(self, worker: int, number: int, stages: Sequence[str]) -> Made:
        """The batch that a worker made after `number` others, which its ring must still hold."""
        at = number % layout.SPANS * layout.SPAN_FIELDS
        spans = self._blocks[worker].spans
        began_s, collate_began_s, ended_s, samples, *spent_s = spans[at : at + layout.SPAN_FIELDS]
        named = zip(stages, spent_s, strict=False)
        stages_s = {stage: spent for stage, spent in named if spent > 0 and stage != "idle"}
        maker = worker if self._in_workers else None
        return Made(maker, began_s, collate_began_s, ended_s, int(samples), stages_s)


def place_of(batch: int, counts: Sequence[float]) -> tuple[int, int] | None:
    """Which worker makes a batch of an epoch, and how many it made before; `None` past the last batch.

    `counts` are the batches of each worker. torch asks the workers round-robin and skips those that have no more:
    worker w of W makes batches w, w + W, w + 2 W while all workers have some.
    """
    left, turn = batch, 0
    for until in sorted(set(counts)):
        workers = [worker for worker, count in enumerate(counts) if count > turn]
        if left < (until - turn) * len(workers):
            return workers[left % len(workers)], turn + left // len(workers)
        left, turn = left - int(until - turn) * len(workers), int(until)
    return None


def number_of(worker: int, turn: int, counts: Sequence[float]) -> int:
    """The number, in its epoch, of the batch that a worker makes after `turn` others: the inverse of `place_of`."""
    before = sum(int(min(count, turn)) for count in counts)
    return before + sum(count > turn for count in counts[:worker])


def _remembered(block: Block) -> range:
    """The numbers of the batches that a worker's ring still holds."""
    made = int(block.header[layout.BATCHES])
    return range(max(0, made - layout.SPANS), made)
