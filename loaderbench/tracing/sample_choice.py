"""Decides which samples are traced, and keeps the sums of long samples apart from those of usual ones.

If one sample in a thousand takes a thousand times as long, few of the traced samples are long, or none. Their stages
then say little about the mean sample. The time of each sample is known, also without its stages. So the stages of
traced long samples are scaled to the time of all that are about as long. Those of usual samples are scaled to their
number. This is stratified sampling.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import chain

from loaderbench.tracing import block as layout
from loaderbench.tracing.block import Block
from loaderbench.tracing.clock import StageClock, cpu_now_s

MAX_COST_SHARE = 0.01
"""Limit on the cost of tracing, as a share of a sample's time. Above it, samples are skipped."""

SAMPLE_COST_S, STAGE_COST_S = 7e-6, 0.7e-6
"""Approximate cost of tracing, in seconds, for a sample and for each of its stages, with caches full of the sample."""

CLASS_FROM_S, CLASS_TIMES = 1e-3, 4.0
"""Classes of long samples by duration: each begins at `CLASS_TIMES` times the start of the one before."""

LONG_TIMES = 4.0
"""A sample is long if it takes longer than this many usual ones, and long enough to be traced at any time."""


class _Sums:
    """By class of long samples: what `Block.long` holds, the longest one, and wall and CPU seconds by stage."""

    __slots__ = ("counts", "cpu_s", "is_empty", "longest_s", "wall_s")

    def __init__(self) -> None:
        sizes = (layout.LONG, layout.MAX_STAGES, layout.MAX_STAGES)
        self.counts, self.wall_s, self.cpu_s = ([[0.0] * size for _ in range(layout.LONG_CLASSES)] for size in sizes)
        self.longest_s, self.is_empty = [0.0] * layout.LONG_CLASSES, True

    def add(self, place: int, other: _Sums) -> None:
        """Add one class of others."""
        self.is_empty = False
        for own, more in ((self.counts, other.counts), (self.wall_s, other.wall_s), (self.cpu_s, other.cpu_s)):
            own[place] = [one + another for one, another in zip(own[place], more[place], strict=True)]


class SampleChoice:
    """Decides which samples of a thread to trace.

    A sample is long if it takes more than `long_s` seconds. Where all samples are traced, none is long.
    `has_long_batches`: a batch that was not traced had a long sample, so the CPU time of other such batches is needed.
    """

    __slots__ = ("_clock", "_held", "_max_cost_share", "_random", "_sums", "has_long_batches", "long_s")

    def __init__(self, clock: StageClock, max_cost_share: float) -> None:
        self.long_s, self.has_long_batches = math.inf, False
        self._clock, self._max_cost_share = clock, max_cost_share
        self._random = random.Random(0)  # private: the user's random state stays untouched
        self._sums, self._held = _Sums(), _Sums()

    def skips_after(self, wall_s: float, stages: float) -> int:
        """A random number of samples to skip that keeps the cost of tracing below its limit.

        The last sample took `wall_s` seconds, and had so many `stages`.
        """
        traced_at_s = (SAMPLE_COST_S + STAGE_COST_S * stages) / self._max_cost_share
        skips = math.floor(traced_at_s / max(wall_s, 1e-7))
        self.long_s = max(traced_at_s, LONG_TIMES * wall_s) if skips else math.inf
        if skips and not self._held.is_empty:
            self._add_held()
        return self._random.randint(skips // 2, skips + (skips + 1) // 2) if skips else 0

    def add_traced(
        self, samples: int, took_s: float, each_s: float, wall_s: Sequence[float], cpu_s: Sequence[float]
    ) -> None:
        """Add samples whose stages were just timed, and that are long or can turn out to be.

        The first sample of a stream often is: it opens files, or fills a buffer. Later ones show how long is usual.
        `each_s` is what is compared with `long_s`. The clock's counters were `wall_s` and `cpu_s` before.
        """
        sums, place = self._sums if each_s > self.long_s else self._held, _class_of(took_s / max(1, samples))
        sums.is_empty, sums.longest_s[place] = False, max(sums.longest_s[place], each_s)
        sums.counts[place][0] += samples
        sums.counts[place][1] += took_s
        _add_differences(sums.wall_s[place], self._clock.wall_s, wall_s)
        _add_differences(sums.cpu_s[place], self._clock.cpu_s, cpu_s)

    def _add_held(self) -> None:
        """Add the samples that turned out to be long, by class."""
        held, self._held = self._held, _Sums()
        for place, longest_s in enumerate(held.longest_s):
            if longest_s > self.long_s:
                self._sums.add(place, held)

    def add_skipped(self, samples: int, took_s: float) -> None:
        """Add long samples that were just loaded without timing their stages.

        The thread used little CPU time between the last traced sample and them, so all of it counts as theirs.
        """
        cpu_at_s = cpu_now_s()
        self._add(samples, took_s, cpu_at_s - self._clock.cpu_at_s)
        self._clock.cpu_at_s = cpu_at_s

    def add_batch(self, took_s: float, cpu_s: float | None) -> None:
        """Add one sample if it is long, from a batch that was not traced. The batch used `cpu_s`, if that is known."""
        if took_s > self.long_s:
            self.has_long_batches = True
            self._add(1, took_s, cpu_s)

    def _add(self, samples: int, took_s: float, cpu_s: float | None) -> None:
        sums, self._sums.is_empty = self._sums.counts[_class_of(took_s / max(1, samples))], False
        sums[2], sums[3] = sums[2] + samples, sums[3] + took_s
        if cpu_s is not None:
            sums[4], sums[5] = sums[4] + took_s, sums[5] + min(took_s, max(0.0, cpu_s))

    def write(self, block: Block) -> None:
        """Add the sums to the block, and reset them."""
        if self._sums.is_empty:
            return
        own, self._sums = self._sums, _Sums()
        for sums, shared in ((own.counts, block.long), (own.wall_s, block.long_wall_s), (own.cpu_s, block.long_cpu_s)):
            for at, value in enumerate(chain.from_iterable(sums)):
                if value:
                    shared[at] += value


def _class_of(took_s: float) -> int:
    """The class of a long sample's duration."""
    return min(layout.LONG_CLASSES - 1, int(math.log(max(1.0, took_s / CLASS_FROM_S), CLASS_TIMES)))


def _add_differences(sums_s: list[float], now_s: Sequence[float], before_s: Sequence[float]) -> None:
    """Add what the counters have grown by; stages that are new since then began at 0."""
    before_s = [*before_s, *[0.0] * (len(now_s) - len(before_s))]
    for place, (now, before) in enumerate(zip(now_s, before_s, strict=True)):
        sums_s[place] += now - before
