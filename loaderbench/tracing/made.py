"""Which worker made which batch of which epoch, when, and where its time went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loaderbench.tracing import block as layout
from loaderbench.tracing.block import Block

_EPOCHS = 128  # are remembered: more than the ring of a worker holds batches worth drawing


@dataclass(frozen=True)
class Made:
    """One batch as `worker` made it, or as the main process did (`None`).

    Moments are of the performance counter, seconds by stage of its timed samples.
    """

    worker: int | None
    began_s: float
    collate_began_s: float
    ended_s: float
    samples: int
    stages_s: dict[str, float]


class MadeBatches:
    """Finds a batch in the workers' blocks by its epoch and its number in that, as long as they remember it."""

    def __init__(self, blocks: Sequence[Block], *, in_workers: bool) -> None:
        self._blocks, self._in_workers = blocks, in_workers
        self._begun: dict[int, list[int]] = {}
        self.epochs = 0

    @property
    def before_epoch(self) -> list[int]:
        """How many batches each worker had made before the last epoch began."""
        return self._begun.get(self.epochs - 1, [0] * len(self._blocks))

    def begin_epoch(self) -> None:
        """The batches that are made from now on are those of another epoch."""
        self.epochs += 1
        self.count_from_now()
        self._begun.pop(self.epochs - 1 - _EPOCHS, None)

    def count_from_now(self) -> None:
        """What was made until now belongs to earlier epochs, such as batches of one that was left early."""
        self._begun[self.epochs - 1] = [int(block.header[layout.BATCHES]) for block in self._blocks]

    def find(self, epoch: int, batch: int) -> Made | None:
        """The batch, by torch's order: worker w of W makes batches w, w + W, w + 2 W; `None` if it is not known."""
        begun = self._begun.get(epoch)
        if begun is None:
            return None
        worker = batch % len(self._blocks)
        number = begun[worker] + batch // len(self._blocks)
        following = self._begun.get(epoch + 1)
        if following is not None and number >= following[worker]:
            return None
        return _made(self._blocks[worker], number, worker if self._in_workers else None)


def _made(block: Block, number: int, worker: int | None) -> Made | None:
    """The batch that a worker made after `number` others, if it is still in the ring."""
    made = int(block.header[layout.BATCHES])
    if not made - layout.SPANS <= number < made:
        return None
    at = number % layout.SPANS * layout.SPAN_FIELDS
    began_s, collate_began_s, ended_s, samples, *spent_s = block.spans[at : at + layout.SPAN_FIELDS]
    stages = zip(block.span_stages(), spent_s, strict=False)
    stages_s = {stage: spent for stage, spent in stages if spent > 0 and stage != "idle"}
    return Made(worker, began_s, collate_began_s, ended_s, int(samples), stages_s)
