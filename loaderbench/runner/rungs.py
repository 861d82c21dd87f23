"""What each rung of the isolation ladder takes away, inside the trial's process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from loaderbench.datasets.page_cache import evict, warm
from loaderbench.loaders.build import Batches
from loaderbench.recorder import Rules
from loaderbench.recorder.rules import FEWEST_BATCHES, FEWEST_BEFORE_TURNS
from loaderbench.recorder.stalls import Wait
from loaderbench.runner.inside import Inside
from loaderbench.runner.orders import TrialOrder
from loaderbench.runner.replay import Replayed, keep


class Fed(Protocol):
    """What a consumer is fed from, and what is known inside of it."""

    def __iter__(self) -> Iterator[Any]: ...

    def begin(self) -> None:
        """Begin to count."""

    def fields(self, waits: Sequence[Wait]) -> dict[str, Any]:
        """Fields of a trial, with `not_measured` among them; `waits` are those of the last epoch."""
        ...


def prepare_files(order: TrialOrder) -> None:
    """Put the trial's files into the page cache, or out of it; end to end they are in it since before the run."""
    paths = (path for path, _ in order.samples)
    rung = order.planned.rung
    if rung == "loader_warm":
        warm(paths)
    elif rung == "loader_cold" or (rung == "end_to_end" and order.suite.measure.cache == "cold"):
        evict(paths)


def feed(order: TrialOrder, batches: Batches, root: str | None) -> tuple[Fed, Rules]:
    """What is left of the loader, and how long it is measured; for a replay it has ended when this returns."""
    seconds, rung = order.suite.measure.seconds, order.planned.rung
    if rung in ("replay_host", "replay_device"):
        return Replayed(keep(batches.iterable), on_device=rung == "replay_device"), Rules(seconds)
    inside = Inside(batches.iterable, root)
    ahead, cycle = batches.prefetch_batches, max(1, batches.num_workers)
    if rung == "loader_cold":
        return OnePass(inside, len(order.samples) // (batches.batch_size or 1)), PassRules(seconds, ahead, cycle)
    return inside, Rules(seconds, ahead, cycle, FEWEST_BEFORE_TURNS if order.in_turns else FEWEST_BATCHES)


class PassRules(Rules):
    """A pass has no batch to spare: what was read ahead is its warm-up, settled or not."""

    def warmed_up(self, moments_s: Sequence[float]) -> bool:
        """Say whether the queue has been turned over."""
        return len(moments_s) > max(1, self.prefetch_batches)


class OnePass:
    """The first batches of a loader, in which no file is read twice: the second time it would come from memory.

    The loader lives on when they are through, so that what its workers did can still be read.
    """

    def __init__(self, inside: Inside, batches: int) -> None:
        self._inside, self._left = inside, batches
        self._batches: Iterator[Any] | None = None
        self.begin, self.fields = inside.begin, inside.fields

    def __iter__(self) -> Iterator[Any]:
        if self._batches is not None:
            return  # a loader that has no more
        self._batches = iter(self._inside)
        yield from islice(self._batches, self._left)
