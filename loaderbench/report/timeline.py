"""What the monitors read over seconds, one trial of each configuration, thinned so that the page stays light."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from loaderbench.records import Config, RunRecord, TimelinePoint, Trial
from loaderbench.report import numbers, words
from loaderbench.report.parts import Column, Panel, Row, Series, Table, Text, TimelinePart, TimelineTrial

MOST_TRIALS = 12
MOST_POINTS = 1500  # of one series: more than a screen has columns
POINTS_OF_PAGE = 30_000  # of all series together: about 250 kB of the page

Readings = list[tuple[float, float]]
"""(seconds, value) pairs in the order of time."""


@dataclass(frozen=True)
class _Kind:
    """How one metric of the monitors is drawn: its strip, its name there, and its factor to the strip's unit."""

    panel: str
    unit: str
    name: str
    factor: float = 1.0
    top: float | None = None
    points: bool = False


_KINDS = {
    "data_wait_s": _Kind("Data wait per batch", "ms", "data wait", 1e3, points=True),
    "cpu_percent_of_allotted": _Kind("CPU", "% of allotted", "CPU", top=100),
    "rss_bytes": _Kind("Host memory", "GiB", "RSS", 2**-30),
    "pss_bytes": _Kind("Host memory", "GiB", "PSS", 2**-30),
    "shm_bytes": _Kind("Host memory", "GiB", "shared memory", 2**-30),
    "disk_read_bytes_per_s": _Kind("Disk reads", "MiB/s", "disk reads", 2**-20),
}
_GPU_KINDS = {
    "utilization_percent": _Kind("GPU, a kernel was resident", "%", "GPU", top=100),
    "memory_used_bytes": _Kind("GPU memory", "GiB", "GPU", 2**-30),
}
_GPU_METRIC = re.compile(r"gpu(\d+)_(\w+)")
_PANELS = ("Data wait per batch", "CPU", "GPU, a kernel was resident", "GPU memory", "Host memory", "Disk reads")


def timeline(run: RunRecord, points: Iterable[TimelinePoint]) -> TimelinePart | None:
    """The strips of some trials, the best configuration's first; `None` without readings."""
    found = _by_trial(points)
    chosen = _choose(run, found)
    if not chosen:
        return None
    series = sum(len(found[trial.id]) for trial in chosen)
    most = max(2, min(MOST_POINTS, POINTS_OF_PAGE // series))
    drawn = tuple(_trial(trial, run, found[trial.id], most) for trial in chosen)
    rows = tuple(row for trial in chosen for row in _rows(trial, found[trial.id]))
    return TimelinePart(drawn, _caption(len(chosen), len(found)), _table(rows))


def _by_trial(points: Iterable[TimelinePoint]) -> dict[str, dict[str, Readings]]:
    found: dict[str, dict[str, Readings]] = {}
    for point in points:
        if math.isfinite(point.value) and math.isfinite(point.t_s) and _kind(point.metric):
            found.setdefault(point.trial, {}).setdefault(point.metric, []).append((point.t_s, point.value))
    for metrics in found.values():
        for readings in metrics.values():
            readings.sort(key=lambda reading: reading[0])
    return found


def _kind(metric: str) -> _Kind | None:
    gpu = _GPU_METRIC.fullmatch(metric)
    if gpu is None:
        return _KINDS.get(metric)
    kind = _GPU_KINDS.get(gpu[2])
    return kind and _Kind(kind.panel, kind.unit, f"GPU {gpu[1]}", kind.factor, kind.top)


def _choose(run: RunRecord, found: dict[str, dict[str, Readings]]) -> list[Trial]:
    """A completed trial of the best configuration, of the baseline, then of each other, by rank."""
    first = [part.config for part in (run.best, run.baseline) if part]
    ranked = sorted(run.configurations, key=lambda c: (c.rank is None, c.rank or 0))
    chosen: list[Trial] = []
    for config in [*first, *(c.config for c in ranked)]:
        trial = _one_of(run.trials, config, found)
        if trial and trial not in chosen:
            chosen.append(trial)
    return chosen[:MOST_TRIALS]


def _one_of(trials: Sequence[Trial], config: Config, found: dict[str, dict[str, Readings]]) -> Trial | None:
    """The trial in the middle of its rounds by samples/s: the one that stands for the others."""
    own = [t for t in trials if t.config == config and t.id in found]
    own.sort(key=lambda t: t.samples_per_s or 0)
    done = [t for t in own if t.status == "completed"] or own
    return done[(len(done) - 1) // 2] if done else None


def _trial(trial: Trial, run: RunRecord, metrics: dict[str, Readings], most: int) -> TimelineTrial:
    panels: dict[str, list[tuple[_Kind, Readings]]] = {}
    for metric, readings in sorted(metrics.items()):
        kind = _kind(metric)
        if kind:
            panels.setdefault(kind.panel, []).append((kind, readings))
    drawn = tuple(_panel(panels[name], most) for name in _PANELS if name in panels)
    longest = max(len(readings) for readings in metrics.values())
    note = (
        f"At most {most:,} min\u2013max points a series are drawn; the longest series has {longest:,} readings."
        if longest > most
        else f"Every reading is drawn; the longest series has {longest:,}."
    )
    return TimelineTrial(_label(trial, run), drawn, note)


def _label(trial: Trial, run: RunRecord) -> str:
    marks = [("best", run.best), ("baseline", run.baseline)]
    said = [mark for mark, part in marks if part and part.config == trial.config]
    if trial.status != "completed":
        said.append(trial.status.replace("_", " "))
    suffix = f" ({', '.join(said)})" if said else ""
    return f"{words.configuration(trial.config).text}, round {trial.round}{suffix}"


def _panel(members: Sequence[tuple[_Kind, Readings]], most: int) -> Panel:
    first = members[0][0]
    series = tuple(_series(kind, readings, most) for kind, readings in members)
    highest = max(value for one in series for value in one.values)
    top = None if first.top is None else max(first.top, highest)
    return Panel(f"{first.panel}, {first.unit}", first.unit, first.points, top, series)


def _series(kind: _Kind, readings: Readings, most: int) -> Series:
    kept = min_max(readings, most)
    values = tuple(_four_digits(value * kind.factor) for _, value in kept)
    return Series(kind.name, tuple(round(t, 3) for t, _ in kept), values)


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")


def min_max(readings: Readings, most: int) -> Readings:
    """At most `most` readings: the lowest and the highest of each of `most / 2` equal stretches, in their order.

    Peaks survive, which a mean or every n-th reading would hide.
    """
    if len(readings) <= most:
        return readings
    kept: Readings = []
    stretches = most // 2
    for i in range(stretches):
        stretch = readings[i * len(readings) // stretches : (i + 1) * len(readings) // stretches]
        ends = {min(stretch, key=_value), max(stretch, key=_value)}
        kept += sorted(ends)
    return kept


def _value(reading: tuple[float, float]) -> float:
    return reading[1]


def _caption(shown: int, recorded: int) -> str:
    said = "Seconds since the trial began; all strips share one axis."
    if shown < recorded:
        said += f" {shown} of {recorded} recorded trials can be chosen: at most one of each configuration."
    return said


_SUMMARY: tuple[tuple[str, Callable[[list[float]], float]], ...] = (
    ("lowest", min),
    ("median", statistics.median),
    ("highest", max),
)


def _rows(trial: Trial, metrics: dict[str, Readings]) -> list[Row]:
    rows = []
    for metric, readings in sorted(metrics.items()):
        kind = _kind(metric)
        if kind is None:
            continue
        values = [value * kind.factor for _, value in readings]
        cells = (numbers.quantity(summary(values)) for _, summary in _SUMMARY)
        label = f"{kind.panel} ({kind.name})" if kind.name not in kind.panel else kind.panel
        trial_cells = (
            Text(words.configuration(trial.config).text),
            Text(f"{label}, {kind.unit}"),
            Text(f"{len(readings):,}"),
        )
        rows.append(Row((*trial_cells, *cells)))
    return rows


def _table(rows: tuple[Row, ...]) -> Table:
    columns = (
        Column("Configuration"),
        Column("Metric"),
        Column("Readings", numeric=True),
        *(Column(name.capitalize(), numeric=True) for name, _ in _SUMMARY),
    )
    return Table("Readings of each trial that can be chosen", columns, rows)
