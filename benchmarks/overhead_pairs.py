"""Cost of blocks of work, and 95% intervals of interleaved blocks: for `overhead.py`."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from scipy.special import stdtrit

LEVEL = 0.95
TRIMMED = 0.1  # trimmed at each end, to ignore other programs that run for a second


@dataclass(frozen=True)
class Spent:
    """CPU and wall seconds of one block. Other programs affect CPU time less, but it does not include waiting."""

    cpu_s: float
    wall_s: float


@dataclass(frozen=True)
class Interval:
    """A mean and its 95% interval."""

    mean: float
    lo: float
    hi: float

    @property
    def width(self) -> float:
        """The distance between the ends."""
        return self.hi - self.lo

    def written(self, digits: int, times: float = 1.0) -> str:
        """Format the mean with its interval, multiplied by `times`."""
        mean, lo, hi = (f"{value * times:.{digits}f}" for value in (self.mean, self.lo, self.hi))
        return f"{mean} ({lo} to {hi})"


Block = Callable[[], Spent]
Column = Callable[[Spent], float]


def cpu(block: Spent) -> float:
    return block.cpu_s


def wall(block: Spent) -> float:
    return block.wall_s


def spent(run: Callable[[], object]) -> Spent:
    cpu_at_s, at_s = time.process_time(), time.perf_counter()
    run()
    took_s = time.perf_counter() - at_s
    return Spent(time.process_time() - cpu_at_s, took_s)


class Rounds:
    """Blocks by contestant; every round has one of each in random order, so drift affects all equally."""

    def __init__(self, steps: int) -> None:
        self.found: dict[str, list[Spent]] = {}
        self.steps = steps
        self._random = random.Random(0)

    def take(self, contestants: dict[str, Block]) -> None:
        """Run one round."""
        order = list(contestants)
        self._random.shuffle(order)
        for name in order:
            self.add(name, contestants[name]())

    def add(self, name: str, block: Spent) -> None:
        """Add a contestant's block of the current round."""
        self.found.setdefault(name, []).append(block)

    def added_s(self, name: str, to: str, of: Column) -> Interval:
        """Seconds per step that one contestant adds to another, over rounds that include both."""
        pairs = zip(self.found[name], self.found[to], strict=False)
        return mean_interval([(of(one) - of(other)) / self.steps for one, other in pairs])

    def kept(self, name: str, without: str, of: Column) -> Interval:
        """Throughput with one contestant over throughput without it."""
        pairs = zip(self.found[name], self.found[without], strict=False)
        logs = mean_interval([math.log(of(other) / of(one)) for one, other in pairs])
        return Interval(math.exp(logs.mean), math.exp(logs.lo), math.exp(logs.hi))

    def step_s(self, name: str) -> float:
        """CPU seconds of a step."""
        return mean_interval([block.cpu_s for block in self.found[name]]).mean / self.steps

    def wall_step_s(self, name: str) -> float:
        """Seconds of a step by the wall clock."""
        return mean_interval([block.wall_s for block in self.found[name]]).mean / self.steps


def mean_interval(values: Sequence[float]) -> Interval:
    """The mean with its Student's t interval, without a tenth at each end.

    Source: Yuen, The Two-Sample Trimmed t for Unequal Population Variances, Biometrika 1974 (with Tukey and McLaughlin
    1963 for one sample).
    """
    count, cut = len(values), int(TRIMMED * len(values))
    inner = sorted(values)[cut : count - cut]
    winsorised = [inner[0]] * cut + inner + [inner[-1]] * cut
    error = math.sqrt(variance(winsorised) / count) / (1 - 2 * cut / count)
    half = float(stdtrit(len(inner) - 1, 0.5 + LEVEL / 2)) * error
    return Interval(fmean(inner), fmean(inner) - half, fmean(inner) + half)
