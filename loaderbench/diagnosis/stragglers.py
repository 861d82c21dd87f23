"""Detects a batch that took much longer to make than others, and what it cost the loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from loaderbench.records import BatchTimes

STRAGGLER = 4.0
"""Ratio to the median of all batches; a slow sample has the same ratio to the median sample."""

WAITED = 0.05
"""Share of a batch's making time; a shorter wait counts as no wait."""


@dataclass(frozen=True, kw_only=True)
class SlowBatch:
    """A batch compared with the others of its trial.

    `typical_s` is the median time to make a batch. `waited_s` is how long the loop waited for this one: 0 if that is
    negligible relative to the making time, `None` if it was never taken. `ready`: how many other batches were ready
    when it was done, and were taken before it.
    """

    batch: BatchTimes
    took_s: float
    typical_s: float
    waited_s: float | None
    ready: int

    @property
    def ratio(self) -> float:
        """The batch's making time relative to the median."""
        return self.took_s / self.typical_s if self.typical_s > 0 else 1.0

    @property
    def is_straggler(self) -> bool:
        """Whether the batch took much longer to make than others."""
        return self.ratio >= STRAGGLER


def slow_batch(batch: BatchTimes, others: Sequence[BatchTimes]) -> SlowBatch | None:
    """Compare a batch with the others of its trial; `None` if too few others of the steady state are known.

    `others` can include the batch itself.
    """
    times_s = [took for one in others if one.steady and (took := _took_s(one)) is not None]
    took_s = _took_s(batch)
    if took_s is None or len(times_s) < 2:
        return None
    return SlowBatch(
        batch=batch,
        took_s=took_s,
        typical_s=median(times_s),
        waited_s=_waited_s(batch, took_s),
        ready=_ready(batch, others),
    )


def _took_s(batch: BatchTimes) -> float | None:
    return None if batch.made_s is None or batch.began_s is None else batch.made_s - batch.began_s


def _waited_s(batch: BatchTimes, took_s: float) -> float | None:
    if batch.wait_s is None or not math.isfinite(batch.wait_s):
        return None
    return batch.wait_s if batch.wait_s > WAITED * took_s else 0.0


def _ready(batch: BatchTimes, others: Sequence[BatchTimes]) -> int:
    """Batches already waiting when this one was done; 0 without workers, since batches are then made on demand."""
    done_s, got_s = batch.made_s, batch.got_s
    if done_s is None or got_s is None:
        return 0
    return sum(
        one.worker is not None
        and one.made_s is not None
        and one.got_s is not None
        and one.made_s <= done_s < one.got_s < got_s
        for one in others
    )
