"""Metrics that need only a function. They are read with the process tree and stored in `metrics` of a trial.

A gauge has the id of its metric in `records/metrics.py`, which defines its label and unit. Every trial and profile
reads each registered gauge about ten times a second, so a gauge must return within microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

Moment = tuple[float, Mapping[str, float]]
"""A time in seconds, and the gauges' values at that time, by id."""


@dataclass(frozen=True)
class Gauge:
    """A function that reads one value of a process tree.

    `read` receives the pids of the tree, its root first, and returns `None` if there is nothing to read. The values
    over the steady state are reduced to their `mean`, the `largest`, or the `rate` per second of a counter. An
    `OSError` means that there is nothing to read, because a process can end at any time.
    """

    id: str
    read: Callable[[Sequence[int]], float | None]
    over_time: Literal["mean", "largest", "rate"]


GAUGES: tuple[Gauge, ...] = (
    # one entry for each metric that needs only a function
)


def read_gauges(pids: Sequence[int]) -> dict[str, float]:
    """The current value of each gauge that returns one."""
    values = {}
    for gauge in GAUGES:
        with suppress(OSError):
            if (value := gauge.read(pids)) is not None:
                values[gauge.id] = value
    return values


def over_time(moments: Sequence[Moment]) -> dict[str, float]:
    """One value per gauge over these moments. A rate needs two readings."""
    values = {}
    for gauge in GAUGES:
        known = [(at_s, read[gauge.id]) for at_s, read in moments if gauge.id in read]
        if (value := _over_time(gauge, known)) is not None:
            values[gauge.id] = value
    return values


def between(before: Moment, after: Moment) -> Iterator[tuple[str, float]]:
    """The values of the gauges that a timeline shows at the later moment."""
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
