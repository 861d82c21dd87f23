"""Reads a run folder without executing anything in it, and turns trials and readings into pandas data frames."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from loaderbench.errors import RunFileError
from loaderbench.records import READABLE_VERSIONS, SCHEMA_VERSION, Readings, RunRecord, TimelinePoint, Trial, to_dict
from loaderbench.records.words import axis_column, out_of_range
from loaderbench.store.parquet import BATCHES_FILE, parquet, read_batches
from loaderbench.store.schema_1 import UpgradeError, upgraded_run, upgraded_trial
from loaderbench.store.writing import LOGS_FOLDER, PAGE_FILE, RUN_FILE, TIMELINE_COLUMNS, TIMELINE_FILE, TRIALS_FILE

if TYPE_CHECKING:
    import pandas as pd

MAX_RUN_BYTES = 500_000_000
_LONGEST_NUMBER = 30  # characters
_EXPECTED = f"expected a run folder or its {RUN_FILE}"
_MEASURED = (RUN_FILE, TRIALS_FILE, TIMELINE_FILE, BATCHES_FILE)


def folder_of(path: Path) -> Path:
    """The run folder, given directly or as its `run.json`."""
    return path if path.is_dir() else path.parent


def measured_files(path: Path) -> list[Path]:
    """The measured files of a run, which is given as its folder or its `run.json`."""
    kept = [folder_of(path) / name for name in _MEASURED]
    return kept if path.is_dir() else [*kept, path]


def files_of(folder: Path) -> list[Path]:
    """The paths that a run writes in its folder, which need not exist yet."""
    return [folder / name for name in (*_MEASURED, PAGE_FILE, LOGS_FOLDER)]


def read_run(path: Path) -> RunRecord:
    """Read a run folder or its `run.json`. Raises `RunFileError`, with a one-line message."""
    file = path / RUN_FILE if path.is_dir() else path
    data = _read_json(file)
    try:
        version = schema_version(data)
        return _runs().validate_python(upgraded_run(data) if version == 1 else data)
    except (RunFileError, UpgradeError) as error:
        raise RunFileError(f"{file}: {error}") from None
    except ValidationError as error:
        raise RunFileError(f"{file}: {first_problem(error)}") from None


@functools.cache  # making one takes longer than reading a run with it
def _runs() -> TypeAdapter[RunRecord]:
    return TypeAdapter(RunRecord)


@functools.cache
def _trials() -> TypeAdapter[Trial]:
    return TypeAdapter(Trial)


def schema_version(data: Any) -> int:
    """The schema version of a `run.json`. Raises `RunFileError` if this version cannot read it."""
    if not isinstance(data, dict) or "schema_version" not in data:
        raise RunFileError(f"not a run of loaderbench; {_EXPECTED}")
    version = data["schema_version"]
    if version not in READABLE_VERSIONS:
        later = isinstance(version, int) and version > SCHEMA_VERSION
        readable = " and ".join(map(str, READABLE_VERSIONS))
        advice = "; upgrade loaderbench to read it" if later else ""
        raise RunFileError(f"schema_version is {repr(version)[:40]}; this version reads {readable}{advice}")
    return int(version)


def first_problem(error: ValidationError) -> str:
    """The first field that violates the schema, and what is wrong with it."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}"


def readable_trials(folder: Path) -> tuple[list[Trial], tuple[str, ...]]:
    """The trials as each was written when it ended, and a line that says which lines cannot be read, if any."""
    file, adapter, found, damaged = folder / TRIALS_FILE, _trials(), list[Trial](), list[int]()
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise RunFileError(f"{file}: cannot read: {error.strerror or error}") from None
    for number, line in enumerate(lines, 1):
        try:
            found.append(adapter.validate_python(upgraded_trial(json.loads(line, **NUMBERS))))
        except (ValueError, RecursionError):  # pydantic's validation errors are ValueErrors
            damaged.append(number)
    if not damaged:
        return found, ()
    first, more = damaged[0], len(damaged) - 1
    return found, (f"{file}: line {first}{f' and {more} more' if more else ''} cannot be read",)


def readable_timeline(path: Path) -> tuple[Readings, tuple[str, ...]]:
    """The readable parts of timeline and batches, if any, and one line for each file that cannot be read."""
    folder, found, unreadable = folder_of(path), Readings(), list[str]()
    try:
        for trial, batches in read_batches(folder / BATCHES_FILE).items():
            found.keep_batches(trial, batches)
    except RunFileError as error:
        unreadable.append(str(error))
    try:
        _read_series(folder / TIMELINE_FILE, found)
    except RunFileError as error:
        unreadable.append(str(error))
    return found, tuple(unreadable)


def _read_series(file: Path, found: Readings) -> None:
    """Add the monitors' saved readings, if any. Raises `RunFileError`, in one line, before anything is added."""
    if not file.is_file():
        return
    readable = parquet()
    from pyarrow import ArrowException

    try:
        table = readable.ParquetFile(file).read(columns=list(TIMELINE_COLUMNS)).combine_chunks()  # without pandas
        if not table.num_rows:
            return
        columns = [table[name].chunk(0).to_numpy().astype("f8", copy=False) for name in ("t_s", "value")]
        for (trial, metric), rows in _rows_of_series(table):
            for own, column in zip(found.series(trial, metric), columns, strict=True):
                own.frombytes(column[rows].tobytes())
    except (ArrowException, KeyError, OSError, TypeError, ValueError) as error:
        raise RunFileError(f"{file}: cannot read: {str(error).splitlines()[0]}") from None


def _rows_of_series(table: Any) -> Iterator[tuple[tuple[str, str], Any]]:
    """Each trial and metric of a timeline, with its row numbers in order."""
    import numpy as np

    trials, metrics = (table[name].chunk(0).dictionary_encode() for name in ("trial", "metric"))
    keys = trials.indices.to_numpy() * len(metrics.dictionary) + metrics.indices.to_numpy().astype("i8")
    order = np.argsort(keys, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        trial, metric = divmod(int(keys[rows[0]]), len(metrics.dictionary))
        yield (str(trials.dictionary[trial]), str(metrics.dictionary[metric])), rows


def _read_json(file: Path) -> Any:
    try:
        if file.stat().st_size > MAX_RUN_BYTES:
            raise RunFileError(f"{file}: larger than {MAX_RUN_BYTES:,} bytes")
        return json.loads(file.read_text(encoding="utf-8"), **NUMBERS)
    except FileNotFoundError:
        left = f"; {TRIALS_FILE} next to it holds its trials" if (file.parent / TRIALS_FILE).is_file() else ""
        raise RunFileError(f"{file}: no such run; {_EXPECTED}{left}") from None
    except OSError as error:
        raise RunFileError(f"{file}: cannot read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise RunFileError(f"{file}: not valid run JSON: {str(error).splitlines()[0]}; {_EXPECTED}") from None


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not a JSON number")


def _in_range(number: float, text: str) -> Any:
    if out_of_range(number):
        shown = text if len(text) <= _LONGEST_NUMBER else f"{text[:20]}...{text[-5:]}"  # with its exponent
        raise ValueError(f"number out of range: {shown}")
    return number


NUMBERS: dict[str, Any] = {
    "parse_constant": _refuse,
    "parse_float": lambda text: _in_range(float(text), text),
    "parse_int": lambda text: _in_range(int(text), text),
}


def trials_frame(trials: Iterable[Trial]) -> pd.DataFrame:
    """One row per trial: its axes as separate columns, then every field and metric that is a plain value.

    An axis named like another column is prefixed with `axis_`.
    """
    import pandas as pd

    hints = get_type_hints(Trial)
    plain = [field.name for field in fields(Trial) if _is_plain(hints[field.name])]
    rows = [_row(trial, plain) for trial in trials]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=[*plain, "failure"])


def timeline_frame(points: Iterable[TimelinePoint]) -> pd.DataFrame:
    """One row per reading: `trial`, `t_s`, `metric`, `value`."""
    import pandas as pd

    return pd.DataFrame([to_dict(point) for point in points], columns=list(TIMELINE_COLUMNS))


def _is_plain(declared: Any) -> bool:
    """Whether a field holds a string or a number, possibly `None`; fields that hold a record get no column."""
    if get_origin(declared) in (Union, UnionType):
        return all(map(_is_plain, get_args(declared)))
    return get_origin(declared) is Literal or declared in (str, int, float, bool, NoneType)


_OF_GPUS = (
    *("utilization_percent", "memory_used_bytes", "power_w", "energy_per_sample_j", "sm_clock_mhz", "memory_clock_mhz"),
    *("pcie_generation", "pcie_width"),
)


def _row(trial: Trial, plain: Iterable[str]) -> dict[str, Any]:
    values = {name: getattr(trial, name) for name in plain}
    device = {f"gpu{gpu.index}_{name}": getattr(gpu, name) for gpu in trial.gpus for name in _OF_GPUS}
    parts = {
        f"gpu{gpu.index}_{name}": value
        for gpu in trial.gpus
        if gpu.performance is not None
        for name, value in vars(gpu.performance).items()
        if name != "not_measured"
    }
    fields = {**values, **device, **parts, **trial.metrics, "failure": trial.failure and trial.failure.kind}
    return {axis_column(name, fields): value for name, value in trial.config.items()} | fields
