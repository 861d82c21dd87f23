"""All trials as a table without empty columns, and as files to download."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loaderbench.records import Config, DatasetSummary, RunRecord, Trial, config_label, to_dict
from loaderbench.records.metrics import METRICS, Metric
from loaderbench.records.words import axis_column, axis_text
from loaderbench.report import axes, metrics, tables, words
from loaderbench.report.model import Block, Column, Fact, Facts, Paragraph, Row, Section, Table, Text, Value
from loaderbench.report.view import MOST_ROWS, View, why

_LONG_TITLE = 300
_MOST_TRIALS = 250  # trials that the report embeds as JSON, 2 kB each when compressed
_FIRST_CSV_FIELDS, _SIDE_CSV_FIELD, _LAST_CSV_FIELD = ("trial", "round", "status"), "side", "failure"
_OTHER_CSV_FIELDS = (
    "samples", "warmup_batches", "steady_s", "ended_early", "samples_per_epoch",
    "reference_decode_before_s", "reference_decode_after_s", "started_at", "duration_s", "log",
)  # fmt: skip


@dataclass(frozen=True)
class Download:
    """A file that the report can write without a server."""

    label: str
    name: str
    mime: str
    content: str


@dataclass(frozen=True)
class Downloads(Block):
    """The files. `note` says what the report leaves out, and where to find it."""

    template = "downloads.html"
    files: tuple[Download, ...]
    note: str | None


def section(view: View) -> Section:
    """All trials, or for a profile all its metrics."""
    title, content = ("All trials", _of_sweep(view)) if view.profile is None else _of_profile(view.profile)
    label = title.split()[-1].capitalize()
    blocks = tuple(block for block in (content, _downloads(view.run)) if block)
    return Section(id="trials", title=title, label=label, blocks=blocks)


def _of_sweep(view: View) -> Block | None:
    """The trials in the order of measurement."""
    run = view.run
    trials = run.sweep_or_ab_trials
    shown = trials[:MOST_ROWS]
    if not shown:
        return Paragraph(Text("No trials ran."))
    columns = [metric for metric in metrics.meant_in(run, metrics.OF_TRIALS) if _has_content(metric, shown)]
    own = axes.columns(run)
    headings = (
        Column("Trial"),
        *([Column("Side")] if run.ab_trials else ()),
        *axes.headings(own),
        Column("Round", numeric=True),
        Column("Status"),
        *(Column(_label(metric), numeric=True, title=metric.trial_hint) for metric in columns),
    )
    rows = tuple(Row(_cells(run, trial, own, columns), view.anchors[trial.id]) for trial in shown)
    note = tables.left_out(len(trials) - len(shown), "in the downloads below", "more trial")
    return Table(_caption(run), headings, _titles_once(rows), note, sortable=True)


def _label(metric: Metric) -> str:
    return metric.trial_label or metric.label


def _has_content(metric: Metric, trials: Sequence[Trial]) -> bool:
    """Whether the column has content."""
    values = [number for trial in trials if (number := metric.of_trial(trial)) is not None]
    return any(number or metric.zeros for number in values)


def _caption(run: RunRecord) -> str:
    fixed = axes.fixed(run)
    same = f"; the same for all: {words.plain(config_label(fixed), 200)}" if fixed else ""
    return f"All trials, in measurement order{same}"


def _titles_once(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Keep each very long title only in its first cell, because hundreds of rows can repeat it."""
    seen: set[str] = set()

    def once(cell: Text) -> Text:
        if cell.title is None or len(cell.title) <= _LONG_TITLE:
            return cell
        first = cell.title not in seen
        seen.add(cell.title)
        return cell if first else replace(cell, title=None)

    return tuple(replace(row, cells=tuple(once(cell) for cell in row.cells)) for row in rows)


def _cells(run: RunRecord, trial: Trial, own: Sequence[str], columns: Sequence[Metric]) -> tuple[Text, ...]:
    return (
        words.name(trial.id),
        *([words.name(trial.side or "")] if run.ab_trials else ()),
        *axes.cells(run, trial.config, own),
        Value(str(trial.round), sort=trial.round),
        _status(trial),
        *(metrics.of_trial(metric, trial, why(trial, metric.reason_field)) for metric in columns),
    )


def _of_profile(trial: Trial) -> tuple[str, Block | None]:
    """The only trial as a list of metrics: known values, and reasons for missing ones."""
    if trial.status != "completed":
        return "Downloads", None
    reasons = trial.not_measured
    shown = [m for m in metrics.OF_TRIALS if _has_content(m, [trial]) or m.reason_field in reasons]
    facts = tuple(Fact(_label(m), metrics.of_trial(m, trial, reasons.get(m.reason_field))) for m in shown)
    return "All metrics", Facts(facts) if facts else None


def _status(trial: Trial) -> Text:
    status = words.plain(trial.status.replace("_", " "), 60)
    if trial.ended_early and trial.failure is None:
        return Text(f"{status}, stopped early", "the loader ran out of data before the measurement was over")
    return Text(status, words.plain(trial.failure.kind.replace("_", " "), 60) if trial.failure else None)


def _downloads(run: RunRecord) -> Downloads:
    """The run as files. A very long run is left out, because it would dominate the size of the report."""
    table, count = Download("trials.csv", "trials.csv", "text/csv", _csv(run)), len(run.trials)
    if count > _MOST_TRIALS:
        return Downloads((table,), f"run.json, with all {count:,} trials, is in the folder of this report.")
    text = json.dumps(_finite(to_dict(without_folders(run))), allow_nan=False)
    return Downloads((Download("run.json", "run.json", "application/json", text), table), None)


def without_folders(run: RunRecord) -> RunRecord:
    """The run with only the names of slow files, and without its image folder, to keep paths out of a shared report."""
    return replace(run, trials=tuple(map(_without_paths, run.trials)), dataset=_without_root(run.dataset))


def _without_root(dataset: DatasetSummary) -> DatasetSummary:
    if dataset.root is None:
        return dataset
    return replace(dataset, root=None, not_measured={**dataset.not_measured, "root": "left out of the report"})


def _without_paths(trial: Trial) -> Trial:
    times = trial.sample_times
    if times is None:
        return trial
    slowest = tuple(replace(sample, path=sample.path and words.file_name(sample.path)) for sample in times.slowest)
    return replace(trial, sample_times=replace(times, slowest=slowest))


def _finite(value: Any) -> Any:
    """The value with `null` for numbers that JSON cannot represent."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(held) for key, held in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_finite(held) for held in value]
    return value


def _csv(run: RunRecord) -> str:
    names = list(axes.axis_values(run))
    first = (*_FIRST_CSV_FIELDS, *([_SIDE_CSV_FIELD] if run.ab_trials else ()))
    meant = metrics.meant_in(run, METRICS)
    columns = [*(metric.id for metric in meant), *_OTHER_CSV_FIELDS]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    others = {*first, *columns, _LAST_CSV_FIELD}
    axes_of_run = (_cell(axis_column(name, others)) for name in names)
    writer.writerow([*first, *axes_of_run, *columns, _LAST_CSV_FIELD])
    for trial in run.sweep_or_ab_trials:
        side = [_cell(trial.side)] if run.ab_trials else []
        writer.writerow(_row(trial, side, names, meant))
    return out.getvalue()


def _row(trial: Trial, side: Sequence[object], names: Sequence[str], meant: Sequence[Metric]) -> list[object]:
    config = [_axis_cell(trial.config, axis) for axis in names]
    fields = [_cell(metric.of_trial(trial)) for metric in meant]
    fields += [_cell(getattr(trial, field)) for field in _OTHER_CSV_FIELDS]
    failure = _cell(trial.failure.kind if trial.failure else None)
    return [_cell(trial.id), trial.round, _cell(trial.status), *side, *config, *fields, failure]


def _axis_cell(config: Config, axis: str) -> object:
    """The value of an axis as in the suite. Only text can be a formula: a number keeps its sign."""
    text = axis_text(config, axis)
    return _cell(text) if isinstance(config.get(axis), str) else text


def _cell(value: object) -> object:
    """A value for a spreadsheet, escaped to keep text from being evaluated as a formula."""
    if isinstance(value, str):
        safe = words.clean(value)
        return f"'{safe}" if safe.startswith(("=", "+", "-", "@", "\t")) else safe
    return "" if value is None else value
