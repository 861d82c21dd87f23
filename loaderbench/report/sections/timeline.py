"""Monitor readings over time, one trial per configuration, downsampled to keep the report small."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from loaderbench.records import Readings, Trial
from loaderbench.report import axes, numbers, words
from loaderbench.report.model import Chart, Column, Row, Section, Table, Text, data_table
from loaderbench.report.sections.timeline_panels import LARGEST, Line, figure, kind_of
from loaderbench.report.view import IN_NEXT, View, by_interest, representative, trials_of

MOST_TRIALS = 48
MOST_POINTS = 1500  # points of one series; a typical screen has fewer columns
POINTS_OF_PAGE = 30_000  # points of all series together, about 250 kB of the report
_MOST_ROWS = 12  # trials in the table below the chart
_SUMMARY: dict[str, Callable[[Any], Any]] = {"min": np.min, "median": np.median, "max": np.max}


@dataclass(frozen=True)
class TimelineTrial:
    """One trial that can be selected on the timeline. `choice` is the number of its configuration, if selectable."""

    label: str
    note: str
    choice: int | None = None


@dataclass(frozen=True, kw_only=True)
class Timeline(Chart):
    """Readings of the monitors over seconds.

    The first trial is selected initially; if `choosing`, others can be selected.
    """

    template = "timeline.html"
    trials: tuple[TimelineTrial, ...]
    choosing: bool


def section(view: View) -> Section | None:
    """The panels of some trials, the best configuration's first; `None` without readings."""
    read = view.readings
    chosen = _choose(view, {trial for trial in read.trials if any(map(kind_of, read.of(trial)))})
    lines = {trial.id: found for trial in chosen if (found := _lines(read, trial.id))}
    shown = [trial for trial in chosen if trial.id in lines]
    if not shown:
        return None
    since = "first reading" if view.is_attached else "steady-state start" if view.profile else "trial start"
    most = _most_of_each([len(lines[trial.id]) for trial in shown])
    drawn = Timeline(
        name="timeline",
        label="Monitor readings over time",
        caption=_caption(len(shown), len(read.trials)),
        figures=tuple(
            figure(lines[trial.id], limit, f"time since {since}, s", has_data_wait=view.has_data_wait)
            for trial, limit in zip(shown, most, strict=True)
        ),
        trials=tuple(_trial(trial, view, lines[trial.id], limit) for trial, limit in zip(shown, most, strict=True)),
        choosing=len(shown) > 1 or bool(view.choices),
    )
    rows = tuple(row for trial in shown[:_MOST_ROWS] for row in _rows(trial, lines[trial.id], view))
    blocks = (drawn, data_table(_table(rows, len(shown))))
    return Section(id="timeline", title="Timeline", label="Timeline", blocks=blocks)


def _lines(read: Readings, trial: str) -> dict[str, Line]:
    """The series that can be drawn, in order of time, with finite values only."""
    lines = {}
    for metric, series in read.of(trial).items():
        seconds, values = (np.array(column, dtype=float) for column in series)
        known = np.isfinite(seconds) & (np.abs(values) < LARGEST)
        if kind_of(metric) and known.any():
            order = np.argsort(seconds[known], kind="stable")
            lines[metric] = seconds[known][order], values[known][order]
    return lines


def _choose(view: View, read: set[str]) -> list[Trial]:
    """One trial of each configuration with readings, the most interesting first."""
    by_id = {name: trial for name, trial in view.trials.items() if name in read}
    trials = (representative(trials_of(configuration, by_id)) for configuration in by_interest(view.run))
    return list(islice((trial for trial in trials if trial is not None), MOST_TRIALS))


def _most_of_each(series: Sequence[int]) -> list[int]:
    """The number of points per series for each trial.

    The first trial, shown initially, has the most; the others share.
    """
    first = min(MOST_POINTS, POINTS_OF_PAGE // 2 // series[0])
    left = POINTS_OF_PAGE - first * series[0]
    others = max(2, min(MOST_POINTS, left // max(1, sum(series[1:]))))
    return [first, *(others for _ in series[1:])]


def _trial(trial: Trial, view: View, lines: Mapping[str, Line], most: int) -> TimelineTrial:
    longest = max(len(values) for _, values in lines.values())
    note = (
        f"Downsampled to {most:,} points per series (min and max kept); the longest has {longest:,} readings."
        if longest > most
        else f"All readings shown, up to {longest:,} per series."
    )
    if view.lacks_waits(trial):
        name = "Data wait" if view.has_data_wait else words.capitalised(IN_NEXT)
        note += f" {name}: maximum of each group of batches, {trial.of_one_process.batches:,} batches in all."
    configurations = view.run.configurations
    choice = next((number for number in view.choices if trial.id in configurations[number].trials), None)
    return TimelineTrial(_label(trial, view), note, choice)


def _label(trial: Trial, view: View) -> str:
    run = view.run
    marks = [("best", run.best), ("baseline", None if view.profile else run.baseline)]
    roles = [mark for mark, part in marks if part and axes.same(part.config, trial.config)]
    if trial.status != "completed":
        roles.append(trial.status.replace("_", " "))
    suffix = f" ({', '.join(roles)})" if roles else ""
    return f"{axes.label(run, trial.config).text}, round {trial.round}{suffix}"


def _caption(shown: int, recorded: int) -> str:
    text = "All panels share the time axis."
    if shown < recorded:
        text += f" {shown} of {recorded} recorded trials shown: at most one per config."
    return text


def _rows(trial: Trial, lines: Mapping[str, Line], view: View) -> list[Row]:
    rows = []
    for metric, (_, values) in sorted(lines.items()):
        found = kind_of(metric)
        if found is None:
            continue
        kind = found.as_consumed(view.has_data_wait)
        cells = (numbers.quantity(float(summary(values * kind.factor))) for summary in _SUMMARY.values())
        named = kind.name.lower() in kind.panel.lower()
        label = kind.title if named else replace(kind, panel=f"{kind.panel} ({kind.name})").title
        trial_cells = (
            Text(words.configuration(trial.config).text),
            Text(label),
            Text(f"{len(values):,}"),
        )
        rows.append(Row((*trial_cells, *cells)))
    return rows


def _table(rows: tuple[Row, ...], trials: int) -> Table:
    columns = (
        Column("Config"),
        Column("Metric"),
        Column("Readings", numeric=True),
        *(Column(name.capitalize(), numeric=True) for name in _SUMMARY),
    )
    some = f", first {_MOST_ROWS} trials" if trials > _MOST_ROWS else ""
    return Table(f"Monitor readings by trial{some}", columns, rows)
