"""The run as the page can write it back to disk, without the folders of its files."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from loaderbench.records import RunRecord, Trial, to_dict
from loaderbench.report import axes, words
from loaderbench.report.parts import Download
from loaderbench.report.slow_samples import file_name

MOST_TRIALS = 250  # that the page holds as JSON, 2 kB each when packed
_TRIAL_FIELDS = (
    "samples_per_s", "data_wait_share", "time_to_first_batch_s", "batches", "samples", "warmup_batches", "steady_s",
    "epoch_ends", "ended_early", "samples_per_epoch",
    "cpu_percent_of_allotted", "rss_bytes", "pss_bytes", "shm_peak_bytes", "disk_read_bytes_per_s",
    "reference_decode_before_s", "reference_decode_after_s", "started_at", "duration_s", "log",
)  # fmt: skip


def downloads(run: RunRecord) -> tuple[Download, ...]:
    """The run as the page can write it back to disk; all of a very long one would be most of the page."""
    table = Download("trials.csv", "trials.csv", "text/csv", _csv(run))
    if _trials(run) > MOST_TRIALS:
        return (table,)
    text = json.dumps(_finite(to_dict(without_folders(run))), indent=1, allow_nan=False)
    return Download("run.json", "run.json", "application/json", text), table


def downloads_note(run: RunRecord) -> str | None:
    """What is left out of the page, and where it is."""
    return f"run.json, with all {_trials(run):,} trials, lies beside this page." if _trials(run) > MOST_TRIALS else None


def _trials(run: RunRecord) -> int:
    """All that were run: of the sweep, with parts taken away, and of the remedies that were tried."""
    return len(run.trials) - len(run.twins)


def without_folders(run: RunRecord) -> RunRecord:
    """The run with the names of slow files alone: a page that is passed on tells no paths."""
    return replace(run, trials=tuple(map(_names_alone, run.trials)))


def _names_alone(trial: Trial) -> Trial:
    times = trial.sample_times
    if times is None:
        return trial
    slowest = tuple(replace(found, path=found.path and file_name(found.path)) for found in times.slowest)
    return replace(trial, sample_times=replace(times, slowest=slowest))


def _finite(value: Any) -> Any:
    """The value with `null` where JSON knows no number."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(held) for key, held in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_finite(held) for held in value]
    return value


def _csv(run: RunRecord) -> str:
    names = list(axes.axis_values(run))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["trial", "round", "status", *map(_cell, names), *_TRIAL_FIELDS, "failure"])
    for trial in run.sweep:
        writer.writerow(_row(trial, names))
    return out.getvalue()


def _row(trial: Trial, names: list[str]) -> list[object]:
    config = [_cell(trial.config.get(axis)) for axis in names]
    fields = [_cell(getattr(trial, field)) for field in _TRIAL_FIELDS]
    failure = _cell(trial.failure.kind if trial.failure else None)
    return [_cell(trial.id), trial.round, _cell(trial.status), *config, *fields, failure]


def _cell(value: object) -> object:
    """A value for a spreadsheet, in which a text must not become a formula."""
    if isinstance(value, str):
        safe = words.clean(value)
        return f"'{safe}" if safe.startswith(("=", "+", "-", "@", "\t")) else safe
    return "" if value is None else value
