"""Metrics that need nothing but a function: each is read with the process tree, and lands in `metrics` of a trial.

A gauge has the id of its metric in `records/metrics.py`, which says how it is called and written; what is registered
here is read by every trial and every profile, about ten times a second: a gauge has to answer in microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

Moment = tuple[float, Mapping[str, float]]
"""Seconds of a clock, and what the gauges read then, by id."""


@dataclass(frozen=True)
class Gauge:
    """`read` is given the pids of a process tree, its root first, and returns `None` where it finds nothing to read.

    What it read over the steady state becomes one value: the `mean`, the `largest`, or for a counter the `rate` per
    second. An `OSError` is nothing to read too: a process may end at any time.
    """

    id: str
    read: Callable[[Sequence[int]], float | None]
    over_time: Literal["mean", "largest", "rate"]


GAUGES: tuple[Gauge, ...] = (
    # a line for each metric that needs nothing but a function
)


def read_gauges(pids: Sequence[int]) -> dict[str, float]:
    """What each gauge reads now, as far as it reads anything."""
    found = {}
    for gauge in GAUGES:
        with suppress(OSError):
            if (value := gauge.read(pids)) is not None:
                found[gauge.id] = value
    return found


def over_time(moments: Sequence[Moment]) -> dict[str, float]:
    """One value of each gauge that was read, of a rate where it was read twice."""
    found = {}
    for gauge in GAUGES:
        known = [(at_s, read[gauge.id]) for at_s, read in moments if gauge.id in read]
        if (value := _over_time(gauge, known)) is not None:
            found[gauge.id] = value
    return found


def between(before: Moment, after: Moment) -> Iterator[tuple[str, float]]:
    """What a timeline shows of each gauge at the later moment."""
    for gauge in GAUGES:
        known = [(at_s, read[gauge.id]) for at_s, read in (before, after) if gauge.id in read]
        value = _over_time(gauge, known if gauge.over_time == "rate" else known[-1:])
        if gauge.id in after[1] and value is not None:
            yield gauge.id, value


def _over_time(gauge: Gauge, known: Sequence[tuple[float, float]]) -> float | None:
    values = [value for _, value in known]
    if gauge.over_time != "rate":
        return (max(values) if gauge.over_time == "largest" else fmean(values)) if values else None
    elapsed_s = known[-1][0] - known[0][0] if known else 0.0
    return (values[-1] - values[0]) / elapsed_s if elapsed_s > 0 else None
