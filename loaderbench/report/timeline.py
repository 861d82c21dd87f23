"""What the monitors read over seconds, one trial of each configuration, thinned so that the page stays light."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence

from loaderbench.records import Config, RunRecord, TimelinePoint, Trial
from loaderbench.report import axes, numbers, words
from loaderbench.report.parts import Column, Row, Table, Text, TimelinePart, TimelineTrial
from loaderbench.report.strips import Readings, kind_of, panels

MOST_TRIALS = 12
MOST_POINTS = 1500  # of one series: more than a screen has columns
POINTS_OF_PAGE = 30_000  # of all series together: about 250 kB of the page


def timeline(run: RunRecord, points: Iterable[TimelinePoint], *, since: str = "the trial began") -> TimelinePart | None:
    """The strips of some trials, the best configuration's first; `None` without readings. `since`: the second 0."""
    found = _by_trial(points)
    chosen = _choose(run, found)
    if not chosen:
        return None
    series = sum(len(found[trial.id]) for trial in chosen)
    most = max(2, min(MOST_POINTS, POINTS_OF_PAGE // series))
    drawn = tuple(_trial(trial, run, found[trial.id], most) for trial in chosen)
    rows = tuple(row for trial in chosen for row in _rows(trial, found[trial.id]))
    return TimelinePart(drawn, f"seconds since {since}", _caption(since, len(chosen), len(found)), _table(rows))


def _by_trial(points: Iterable[TimelinePoint]) -> dict[str, dict[str, Readings]]:
    found: dict[str, dict[str, Readings]] = {}
    for point in points:
        if math.isfinite(point.value) and math.isfinite(point.t_s) and kind_of(point.metric):
            found.setdefault(point.trial, {}).setdefault(point.metric, []).append((point.t_s, point.value))
    for metrics in found.values():
        for readings in metrics.values():
            readings.sort(key=lambda reading: reading[0])
    return found


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
    own = [t for t in trials if axes.same(t.config, config) and t.id in found]
    own.sort(key=lambda t: t.samples_per_s or 0)
    done = [t for t in own if t.status == "completed"] or own
    return done[(len(done) - 1) // 2] if done else None


def _trial(trial: Trial, run: RunRecord, metrics: dict[str, Readings], most: int) -> TimelineTrial:
    longest = max(len(readings) for readings in metrics.values())
    note = (
        f"At most {most:,} min\u2013max points a series are drawn; the longest series has {longest:,} readings."
        if longest > most
        else f"Every reading is drawn; the longest series has {longest:,}."
    )
    return TimelineTrial(_label(trial, run), panels(metrics, most), note)


def _label(trial: Trial, run: RunRecord) -> str:
    marks = [("best", run.best), ("baseline", run.baseline)]
    said = [mark for mark, part in marks if part and axes.same(part.config, trial.config)]
    if trial.status != "completed":
        said.append(trial.status.replace("_", " "))
    suffix = f" ({', '.join(said)})" if said else ""
    return f"{words.configuration(trial.config).text}, round {trial.round}{suffix}"


def _caption(since: str, shown: int, recorded: int) -> str:
    said = f"Seconds since {since}; all strips share one axis."
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
        kind = kind_of(metric)
        if kind is None:
            continue
        values = [value * kind.factor for _, value in readings]
        cells = (numbers.quantity(summary(values)) for _, summary in _SUMMARY)
        label = f"{kind.panel} ({kind.name})" if kind.name.lower() not in kind.panel.lower() else kind.panel
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
