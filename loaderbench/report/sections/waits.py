"""Distributions of times: data wait and steps over batches, time per sample, and the slowest samples."""

from __future__ import annotations

from loaderbench.diagnosis.wording import in_main_process
from loaderbench.records import SampleTimes, SlowSample, Trial
from loaderbench.report import numbers, tables, words
from loaderbench.report.model import Breakdown, Column, Fact, Row, Table, Text, Value
from loaderbench.report.view import IN_NEXT, has_data_wait, why

_SLOW = "Slow samples"
_FIELDS = (("data wait", "data_wait"), ("rest of step", "step"))
_FIELDS_WITHOUT_CONSUMER = ((IN_NEXT, "data_wait"),)
_MOST_SAMPLES = 10
_INDEX = Column("Index", numeric=True, title="index in the dataset; for an iterable dataset, the running count")
_FILE = Column("File")
_TIME = (Column("ms", numeric=True), Column("Largest stage", prose=True))
_WORKER = Column("Worker", numeric=True)


def waits(trial: Trial) -> Breakdown:
    """Percentiles over batches, with first batch and epoch boundaries separately."""
    title = f"{waits_label(trial)} and epochs"
    named = _FIELDS if has_data_wait(trial.consumer) else _FIELDS_WITHOUT_CONSUMER
    spreads = [(label, spread) for label, field in named if (spread := getattr(trial, field))]
    missing = {label: why(trial, field) for label, field in named if getattr(trial, field) is None}
    if not spreads and trial.epochs is None:
        reason = next((reason for reason in missing.values() if reason), why(trial, "epochs"))
        return Breakdown(title=title, missing=numbers.missing(reason))
    return Breakdown(
        title=title,
        tables=(tables.of_spreads("Time per batch", "batch", "batches", spreads),) if spreads else (),
        facts=tuple(_facts(trial)),
        notes=(
            *([tables.ACCURACY] if spreads else []),
            *(_missing_text(label, reason) for label, reason in missing.items()),
        ),
    )


def waits_label(trial: Trial) -> str:
    """The name of the time per batch that the loop spends in `next()`."""
    return "Data wait" if has_data_wait(trial.consumer) else words.capitalised(IN_NEXT)


def _missing_text(label: str, reason: str | None) -> Text:
    return Text(f"{label.capitalize()}: {numbers.missing(reason).text}.")


def _facts(trial: Trial) -> list[Fact]:
    facts = []
    first = why(trial, "time_to_first_batch_s")
    if trial.time_to_first_batch_s is not None or first:
        facts.append(Fact("First batch", numbers.duration(trial.time_to_first_batch_s, first)))
    return facts + _epochs(trial)


def _epochs(trial: Trial) -> list[Fact]:
    """Epochs and their boundaries. A boundary lasts from the last request to the next epoch's first batch."""
    epochs = trial.epochs
    if epochs is None:
        reason = why(trial, "epochs")
        return [Fact("Epoch boundary", numbers.missing(reason))] if reason else []
    begun = Fact("Epochs started", Text(f"{epochs.begun:,}"))
    if epochs.boundary_s is None:
        return [begun, Fact("Epoch boundary", numbers.missing(epochs.not_measured.get("boundary_s")))]
    mean, longest = numbers.duration(epochs.boundary_s), numbers.duration(epochs.boundary_max_s)
    several = not longest.missing and longest.text != mean.text
    text = f"mean {mean.text}, max {longest.text}" if several else mean.text
    return [begun, Fact("Epoch boundary", Text(text))]


def slow(trial: Trial) -> Breakdown:
    """The distribution over all samples, and the slowest samples."""
    times = trial.sample_times
    if times is None:
        return Breakdown(title=_SLOW, missing=numbers.missing(why(trial, "sample_times")))
    all_tables = [tables.of_spreads("Time per sample", "sample", "samples", [("sample", times.wall)])]
    if times.slowest:
        all_tables.append(slowest(times, _MOST_SAMPLES, workers=not in_main_process(trial)))
    notes = (tables.ACCURACY, Text("File names only, without their folders."))
    return Breakdown(
        title=_SLOW,
        lead=Text(_tail(times.tail_share)),
        tables=tuple(all_tables),
        notes=notes if any(sample.path for sample in times.slowest) else notes[:1],
    )


def _tail(share: float) -> str:
    if share <= 0:
        return f"No sample took more than 4{numbers.TIMES} the median."
    return (
        f"Maximum gain from fixing outliers: {tables.percentage(share).text} of loading time "
        f"(samples over 4{numbers.TIMES} the median)."
    )


def slowest(times: SampleTimes, most: int, *, workers: bool) -> Table:
    """The slowest samples first. Columns for files and workers are left out if empty."""
    samples = sorted(times.slowest, key=lambda sample: -sample.wall_s)[:most]
    columns = [
        _INDEX,
        *([_FILE] if any(sample.path for sample in samples) else []),
        *_TIME,
        *([_WORKER] if workers else []),
    ]
    times_ms = tables.milliseconds([sample.wall_s for sample in samples])
    rows = [_row(sample, time, columns) for sample, time in zip(samples, times_ms, strict=True)]
    note = tables.left_out(len(times.slowest) - len(samples), "in run.json", "more", "more")
    return Table("Slowest samples", tuple(columns), tuple(rows), note)


def _row(sample: SlowSample, time: Value, columns: list[Column]) -> Row:
    cells = {
        _INDEX: _unknown(sample, "index") if sample.index is None else Value(str(sample.index), sort=sample.index),
        _FILE: words.outside(words.file_name(sample.path), 40) if sample.path else _unknown(sample, "path"),
        _TIME[0]: time,
        _TIME[1]: words.stage(sample.stage),
        _WORKER: numbers.whole(sample.worker),
    }
    return Row(tuple(cells[column] for column in columns))


def _unknown(sample: SlowSample, field: str) -> Value:
    reason = sample.not_measured.get(field)
    text = words.sentence(f"unknown: {reason}" if reason else "unknown")
    return Value(text.text, text.title, main="unknown", missing=True)
