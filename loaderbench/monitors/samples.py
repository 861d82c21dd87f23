"""What was read of a process tree at one moment, and what several such samples say together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from loaderbench.monitors.gauges import Moment, between
from loaderbench.monitors.process_tree import TreeReading


@dataclass(frozen=True)
class Sample:
    """The monitors of processes at one moment of a clock that never goes back."""

    at_s: float
    tree: TreeReading
    shm_bytes: int | None

    @property
    def gauges(self) -> Moment:
        """What the gauges read, and when."""
        return self.at_s, self.tree.gauges


def cpu_percent(samples: Sequence[Sample], cpus_allotted: float) -> float | None:
    """CPU time of the process tree over the wall time of all available CPUs; `None` if not known at two moments."""
    if len(samples) < 2 or samples[-1].at_s <= samples[0].at_s:
        return None
    before_s, after_s = samples[0].tree.cpu_s, samples[-1].tree.cpu_s
    if before_s is None or after_s is None:
        return None
    return max(0.0, 100 * (after_s - before_s) / (samples[-1].at_s - samples[0].at_s) / cpus_allotted)


def series(samples: Sequence[Sample], cpus_allotted: float) -> Iterator[tuple[float, str, float]]:
    """What a timeline shows: moment, metric and value."""
    for before, sample in pairwise(samples):
        percent = cpu_percent([before, sample], cpus_allotted)
        if percent is not None:
            yield sample.at_s, "cpu_percent_of_allotted", percent
        if sample.tree.rss_bytes is not None:
            yield sample.at_s, "rss_bytes", sample.tree.rss_bytes
        if sample.shm_bytes is not None:
            yield sample.at_s, "shm_bytes", sample.shm_bytes
        for name, value in between(before.gauges, sample.gauges):
            yield sample.at_s, name, value
