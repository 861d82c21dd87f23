"""The strips of the timeline: which metric is drawn where, in which unit, and how a long series is thinned."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from loaderbench.report.parts import Panel, Series

LARGEST = 1e300
"""A reading beyond it is none; below it no unit makes it infinite."""

Line = tuple[Any, Any]
"""Seconds and values: two arrays of floats of shape (n,), in the order of time."""


@dataclass(frozen=True)
class Kind:
    """How one metric of the monitors is drawn: its strip, its name there, and its factor to the strip's unit."""

    panel: str
    unit: str
    name: str
    factor: float = 1.0
    top: float | None = None
    points: bool = False


_KINDS = {
    "data_wait_s": Kind("Data wait per batch", "ms", "data wait", 1e3, points=True),
    "cpu_percent_of_allotted": Kind("CPU", "% of allotted", "CPU", top=100),
    "rss_bytes": Kind("Host memory", "GiB", "RSS", 2**-30),
    "pss_bytes": Kind("Host memory", "GiB", "PSS", 2**-30),
    "shm_bytes": Kind("Host memory", "GiB", "shared memory", 2**-30),
    "disk_read_bytes_per_s": Kind("Disk reads", "MiB/s", "disk reads", 2**-20),
}
_GPU_KINDS = {
    "utilization_percent": Kind("GPU, a kernel was resident", "%", "GPU", top=100),
    "memory_used_bytes": Kind("GPU memory", "GiB", "GPU", 2**-30),
}
_GPU_METRIC = re.compile(r"gpu(\d+)_(\w+)")
_PANELS = ("Data wait per batch", "CPU", "GPU, a kernel was resident", "GPU memory", "Host memory", "Disk reads")


def kind_of(metric: str) -> Kind | None:
    """How a metric is drawn; `None` for one that the page does not know."""
    gpu = _GPU_METRIC.fullmatch(metric)
    if gpu is None:
        return _KINDS.get(metric)
    kind = _GPU_KINDS.get(gpu[2])
    return kind and Kind(kind.panel, kind.unit, f"GPU {gpu[1]}", kind.factor, kind.top)


def panels(metrics: Mapping[str, Line], most: int) -> tuple[Panel, ...]:
    """The strips from above to below, each series of at most `most` points."""
    members: dict[str, list[tuple[Kind, Line]]] = {}
    for metric, line in sorted(metrics.items()):
        kind = kind_of(metric)
        if kind:
            members.setdefault(kind.panel, []).append((kind, line))
    return tuple(_panel(members[name], most) for name in _PANELS if name in members)


def _panel(members: Sequence[tuple[Kind, Line]], most: int) -> Panel:
    first = members[0][0]
    series = tuple(_series(kind, line, most) for kind, line in members)
    highest = max(value for one in series for value in one.values)
    top = None if first.top is None else max(first.top, highest)
    return Panel(f"{first.panel}, {first.unit}", first.unit, first.points, top, series)


def _series(kind: Kind, line: Line, most: int) -> Series:
    seconds, values = min_max(line, most)
    shown = tuple(_four_digits(value * kind.factor) for value in values.tolist())
    return Series(kind.name, tuple(round(t, 3) for t in seconds.tolist()), shown)


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")


def min_max(line: Line, most: int) -> Line:
    """At most `most` points: the lowest and the highest of each of `most / 2` equal stretches, in their order.

    Peaks survive, which a mean or every n-th reading would hide.
    """
    seconds, values = line
    if len(values) <= most:
        return line
    edges = np.arange(most // 2 + 1) * len(values) // (most // 2)
    ends = {int(low + find(values[low:high])) for low, high in pairwise(edges) for find in (np.argmin, np.argmax)}
    kept = sorted(ends)
    return seconds[kept], values[kept]
