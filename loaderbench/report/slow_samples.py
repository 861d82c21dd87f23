"""The samples that take long: how long, what they cost together, and which they are."""

from __future__ import annotations

import re

from loaderbench.diagnosis.wording import in_main_process
from loaderbench.records import SampleTimes, SlowSample, Trial
from loaderbench.report import numbers, spreads, stacks, stages, words
from loaderbench.report.parts import Column, Row, Table, Text, Value
from loaderbench.report.parts_inside import Breakdown
from loaderbench.report.trials import why

TITLE = "Slow samples"
MOST_SAMPLES = 10
SLOWEST = "The slowest samples"
_INDEX = Column("Index", numeric=True, title="in the dataset, or the running number of an iterable one")
_FILE = Column("File")
_TIME = (Column("ms", numeric=True), Column("Mostly in", title="the stage that took most of it"))
_WORKER = Column("Worker", numeric=True)
_SEPARATOR = re.compile(r"[/\\]")


def slow(trial: Trial) -> Breakdown:
    """The distribution over all samples, and the slowest by name."""
    times = trial.sample_times
    if times is None:
        return Breakdown(id="slow", title=TITLE, missing=numbers.missing(why(trial, "sample_times")))
    tables = [spreads.table("How long a sample took", "sample", "samples", [("a sample", times.wall)])]
    if times.slowest:
        tables.append(slowest(times, MOST_SAMPLES, workers=not in_main_process(trial)))
    notes = (spreads.ACCURACY, Text("Of a path the page shows the file\u2019s name alone."))
    return Breakdown(
        id="slow",
        title=TITLE,
        lead=Text(_tail(times.tail_share)),
        tables=tuple(tables),
        notes=notes if any(found.path for found in times.slowest) else notes[:1],
    )


def _tail(share: float) -> str:
    if share <= 0:
        return "No sample took more than four times the median."
    said = stacks.percentage(share).text
    return (
        f"Samples slower than four times the median took {said} of the workers\u2019 time beyond that median: "
        "so much would be won if they were like the others."
    )


def slowest(times: SampleTimes, most: int, *, workers: bool) -> Table:
    """The slowest first; without the column of files where none is known, and of workers where there are none."""
    found = sorted(times.slowest, key=lambda sample: -sample.wall_s)[:most]
    columns = [
        _INDEX,
        *([_FILE] if any(sample.path for sample in found) else []),
        *_TIME,
        *([_WORKER] if workers else []),
    ]
    times_ms = stacks.milliseconds([sample.wall_s for sample in found])
    rows = [_row(sample, time, columns) for sample, time in zip(found, times_ms, strict=True)]
    left = len(times.slowest) - len(found)
    return Table(
        SLOWEST, tuple(columns), tuple(rows), f"{numbers.count(left, 'more', 'more')} in run.json." if left else None
    )


def _row(sample: SlowSample, time: Value, columns: list[Column]) -> Row:
    cells = {
        _INDEX: _unknown(sample, "index") if sample.index is None else Value(str(sample.index), sort=sample.index),
        _FILE: words.outside(file_name(sample.path), 40) if sample.path else _unknown(sample, "path"),
        _TIME[0]: time,
        _TIME[1]: stages.name(sample.stage),
        _WORKER: numbers.whole(sample.worker),
    }
    return Row(tuple(cells[column] for column in columns))


def file_name(path: str) -> str:
    """The last component of a path of any system."""
    return _SEPARATOR.split(path.rstrip("/\\"))[-1]


def _unknown(sample: SlowSample, field: str) -> Value:
    reason = sample.not_measured.get(field)
    said = words.sentence(f"not known: {reason}" if reason else "not known")
    return Value(said.text, said.title, main="not known", missing=True)
