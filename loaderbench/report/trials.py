"""The table of all trials: only columns that hold something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from loaderbench.records import Config, GpuUse, RunRecord, Trial, config_label, format_scalar
from loaderbench.report import axes, numbers, words
from loaderbench.report.parts import Column, Fact, Row, Table, Text, Value

MOST_ROWS = 400  # keeps the page below its size; the downloads hold every trial
_MOST_AXES = 6  # columns of their own; more axes share one
_LONG_TITLE = 300


@dataclass(frozen=True)
class _Measure:
    """One column: the field of a trial that says why it is empty, how its number is read and written."""

    label: str
    field: str
    number: Callable[[Trial], float | None]
    write: Callable[[float | None, str | None], Value]
    title: str | None = None
    zeros: bool = True
    """Whether a column of nothing but zeros says something."""

    def holds_something(self, trials: Sequence[Trial]) -> bool:
        """Whether the column is worth its room."""
        found = [number for number in map(self.number, trials) if number is not None]
        return any(number or self.zeros for number in found)


def _gpu(trial: Trial, read: Callable[[GpuUse], float | None]) -> float | None:
    """The highest over the devices of a trial."""
    return max((v for v in map(read, trial.gpus) if v is not None), default=None)


def _rate(value: float | None, reason: str | None) -> Value:
    return numbers.quantity(value, reason=reason)


def _share(value: float | None, reason: str | None) -> Value:
    return numbers.percent(None if value is None else value * 100, reason)


_MEASURES = (
    _Measure("Samples/s", "samples_per_s", lambda t: t.samples_per_s, _rate),
    _Measure("Data wait share", "data_wait_share", lambda t: t.data_wait_share, _share),
    _Measure("First batch", "time_to_first_batch_s", lambda t: t.time_to_first_batch_s, numbers.duration),
    _Measure("Batches", "batches", lambda t: t.batches, numbers.whole),
    _Measure(
        "Epoch ends",
        "epoch_ends",
        lambda t: t.epoch_ends,
        numbers.whole,
        "within the steady state; each costs the loader a new start",
        zeros=False,
    ),
    _Measure("CPU, % of allotted", "cpu_percent_of_allotted", lambda t: t.cpu_percent_of_allotted, numbers.percent),
    _Measure("PSS", "pss_bytes", lambda t: t.pss_bytes, numbers.memory, "host memory, shared pages counted once"),
    _Measure("RSS", "rss_bytes", lambda t: t.rss_bytes, numbers.memory, "host memory, shared pages counted in each"),
    _Measure("Shared memory", "shm_peak_bytes", lambda t: t.shm_peak_bytes, numbers.memory),
    _Measure(
        "GPU utilization",
        "gpus",
        lambda t: _gpu(t, lambda g: g.utilization_percent),
        numbers.percent,
        "a kernel was resident; the highest of the devices",
    ),
    _Measure(
        "GPU memory",
        "gpus",
        lambda t: _gpu(t, lambda g: g.memory_used_bytes),
        numbers.memory,
        "the highest of the devices",
    ),
)


def anchors(run: RunRecord) -> dict[str, str]:
    """The place on the page of each trial that has a row: by number, since a trial's name may hold anything."""
    return {trial.id: f"trial-{i}" for i, trial in enumerate(run.sweep[:MOST_ROWS], start=1)}


def trials(run: RunRecord) -> Table:
    """Every trial as it was measured, in the order of measuring."""
    shown = run.sweep[:MOST_ROWS]
    measures = [m for m in _MEASURES if m.holds_something(shown)]
    own = own_columns(run)
    columns = (
        Column("Trial"),
        *(axis_column(axis) for axis in own),
        *(() if own else (Column("Configuration"),)),
        Column("Round", numeric=True),
        Column("Status"),
        *(Column(m.label, numeric=True, title=m.title) for m in measures),
    )
    places = anchors(run)
    rows = tuple(Row(_cells(trial, own, measures), places[trial.id]) for trial in shown)
    left = len(run.sweep) - len(shown)
    note = f"{numbers.count(left, 'more trial')} in the downloads below." if left else None
    return Table(_caption(run), columns, _titles_once(rows), note)


def own_columns(run: RunRecord) -> list[str]:
    """The axes that get a column: those that vary, unless they are too many."""
    varied = [axis for axis, values in axes.axis_values(run).items() if len(values) > 1]
    return varied if len(varied) <= _MOST_AXES else []


def _caption(run: RunRecord) -> str:
    fixed = axes.fixed(run)
    same = f"; {words.plain(config_label(fixed), 200)} in all of them" if fixed else ""
    return f"Every trial in the order of measuring{same}"


def _titles_once(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The rows with each very long title in its first place alone: repeated in hundreds of rows it swells the page."""
    seen: set[str] = set()

    def once(cell: Text) -> Text:
        if cell.title is None or len(cell.title) <= _LONG_TITLE:
            return cell
        first = cell.title not in seen
        seen.add(cell.title)
        return cell if first else replace(cell, title=None)

    return tuple(replace(row, cells=tuple(once(cell) for cell in row.cells)) for row in rows)


def axis_column(axis: str) -> Column:
    """The heading of an axis."""
    shown = words.outside(axis, 30)
    return Column(shown.text, numeric=True, title=shown.title)


def _cells(trial: Trial, own: list[str], measures: list[_Measure]) -> tuple[Text, ...]:
    config = [value_cell(trial.config, axis) for axis in own] or [words.configuration(trial.config)]
    return (
        words.name(trial.id),
        *config,
        Value(str(trial.round), sort=trial.round),
        _status(trial),
        *(m.write(m.number(trial), why(trial, m.field)) for m in measures),
    )


def why(trial: Trial, *fields: str) -> str | None:
    """Why fields of the trial are empty; a trial that failed has one reason for all of them."""
    failure = f"the trial failed ({trial.failure.kind.replace('_', ' ')})" if trial.failure else None
    return next((trial.not_measured[field] for field in fields if field in trial.not_measured), failure)


def readings(trial: Trial) -> tuple[Fact, ...]:
    """One trial as a list, for a report that has no other: what is known, and what has a reason not to be."""
    shown = [m for m in _MEASURES if m.holds_something([trial]) or m.field in trial.not_measured]
    return tuple(Fact(m.label, m.write(m.number(trial), trial.not_measured.get(m.field))) for m in shown)


def value_cell(config: Config, axis: str) -> Text:
    """The value of an axis, which sorts as the number that it is."""
    if axis not in config:
        return Text("\u2013")
    value = config[axis]
    shown = words.outside(format_scalar(value), 40)
    return Value(shown.text, shown.title, sort=float(value)) if isinstance(value, (int, float)) else shown


def _status(trial: Trial) -> Text:
    status = words.plain(trial.status.replace("_", " "), 60)
    if trial.ended_early and trial.failure is None:
        return Text(f"{status}, ended early", "the loader ran dry before it was measured for long enough")
    return Text(status, words.plain(trial.failure.kind.replace("_", " "), 60) if trial.failure else None)
