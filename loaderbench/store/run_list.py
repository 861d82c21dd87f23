"""Summaries of the runs in a folder, newest first; an unreadable run is listed with the reason."""

from __future__ import annotations

import functools
import heapq
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from loaderbench.errors import RunFileError
from loaderbench.records import Config, Interval, Kind, Scalar, moment, varying
from loaderbench.store.reading import first_problem, schema_version
from loaderbench.store.writing import PAGE_FILE, RUN_FILE, TRIALS_FILE

DEFAULT_FOLDER = Path("reports")
MOST_RUNS = 200

_MOST_SAMPLES_PER_S = 1e12  # faster than any loader: a larger value is not a rate
_TIME_IN_NAME = re.compile(r"\d{8}T\d{6}Z")
MAX_BYTES = 50_000_000  # a run of 1,000 trials takes about 5 MB
_UNFINISHED = "no run.json: the run is in progress, or stopped before its first result"
_MEMBER = re.compile(r'\n "(\w+)": ')


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One run. `config` and `samples_per_s` are those of the best, or of a profile; `reason` says why they are missing.

    `own_config` omits the axes with a single value; `tried` and `measured` count configurations.
    """

    folder: str
    has_page: bool
    name: str
    kind: Kind
    started: datetime | None
    complete: bool
    headline: str
    config: Config | None
    own_config: Config | None
    samples_per_s: Interval | None
    reason: str | None
    tried: int
    measured: int


@dataclass(frozen=True)
class UnreadableRun:
    """A folder with a run that cannot be shown; `reason` is one line."""

    folder: str
    has_page: bool
    reason: str


@dataclass(frozen=True)
class RunList:
    """The runs of a folder, newest first; `left_out` counts the older ones that were not read."""

    runs: tuple[RunSummary, ...]
    unreadable: tuple[UnreadableRun, ...] = ()
    left_out: int = 0


def list_runs(parent: Path) -> RunList:
    """Read the newest runs of a folder. Raises `OSError` only if the folder itself cannot be listed."""
    dated = list(_dated(parent))
    newest = [name for _, name in heapq.nlargest(MOST_RUNS, dated)]
    found = [read_summary(parent / name) for name in newest]
    runs = sorted((run for run in found if isinstance(run, RunSummary)), key=_sort_key)
    unreadable = tuple(run for run in found if isinstance(run, UnreadableRun))
    return RunList(tuple(runs), unreadable, len(dated) - len(found))


def read_summary(folder: Path) -> RunSummary | UnreadableRun:
    """Read one run, or say in one line why that failed."""
    has_page = False
    try:
        has_page = (folder / PAGE_FILE).is_file()
        return _summary(folder, has_page, _read_fields(folder / RUN_FILE))
    except RunFileError as error:
        return UnreadableRun(folder.name, has_page, str(error))
    except OSError as error:
        return UnreadableRun(folder.name, has_page, f"cannot read: {error.strerror or error}")
    except (ValueError, RecursionError) as error:
        message = str(error).partition("\n")[0]
        return UnreadableRun(folder.name, has_page, f"{RUN_FILE} is not valid JSON: {message}")


def _dated(parent: Path) -> Iterator[tuple[float, str]]:
    """Yield every folder with a complete or partial run, and the time to sort it by."""
    with os.scandir(parent) as entries:
        for entry in entries:
            with suppress(OSError):  # skips broken links
                if entry.is_dir() and (written := _modified_at(Path(entry.path))) is not None:
                    yield _time_in_name(entry.name) or written, entry.name


def _modified_at(folder: Path) -> float | None:
    """When the run's files were written; a folder without access permission could be a run."""
    for name in (RUN_FILE, TRIALS_FILE):
        try:
            return (folder / name).stat().st_mtime
        except FileNotFoundError:
            continue
        except PermissionError:
            return folder.stat().st_mtime
    return None


def _time_in_name(name: str) -> float | None:
    """The time in a run folder's name, which, unlike file times, survives copying."""
    written = _TIME_IN_NAME.search(name)
    with suppress(ValueError):
        if written:
            return datetime.strptime(written[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc).timestamp()
    return None


def _sort_key(run: RunSummary) -> tuple[bool, float, str]:
    """Sort key for newest first, and runs without a date last."""
    return run.started is None, -run.started.timestamp() if run.started else 0.0, run.folder


def _summary(folder: Path, has_page: bool, found: _Fields) -> RunSummary:
    config, rate = _result(found)
    own = varying(config, found.plan.axes) if config is not None else None
    return RunSummary(
        folder=folder.name,
        has_page=has_page,
        name=found.name,
        kind=found.kind,
        started=moment(found.started_at),
        complete=found.complete,
        headline=(found.comparison or found.verdict).headline,
        config=config,
        own_config=own or config,
        samples_per_s=rate,
        reason=None if rate else _reason(found),
        tried=sum(bool(one.trials) for one in found.configurations),
        measured=sum(map(_is_measured, found.configurations)),
    )


def _result(found: _Fields) -> tuple[Config | None, Interval | None]:
    """The best result of a sweep, or the only result of a profile."""
    if found.kind == "sweep":
        return (found.best.config, _plausible(found.best.samples_per_s)) if found.best else (None, None)
    only = next(iter(found.configurations), None)
    return (only.config, _plausible(only.samples_per_s)) if only else (None, None)


def _reason(found: _Fields) -> str:
    """Why there is no rate, as the run itself says."""
    reasons = [one.not_measured.get("samples_per_s") for one in found.configurations]
    if not any(one.trials for one in found.configurations):
        return "no trial ran"
    if not any(one.samples_per_s for one in found.configurations):
        return next(filter(None, reasons), "every trial failed")
    return found.not_measured.get("best") or "no best config with a measured rate"


def _is_measured(one: _Configuration) -> bool:
    """Whether the configuration has a rate, or at least the CPU use of an attached process."""
    return _plausible(one.samples_per_s) is not None or one.cpu_percent_of_allotted is not None


def _plausible(rate: Interval | None) -> Interval | None:
    """The rate, if all of its values are plausible for a loader."""
    values = [] if rate is None else [x for x in (rate.est, rate.lo, rate.hi) if x is not None]
    sound = values and all(math.isfinite(x) and abs(x) <= _MOST_SAMPLES_PER_S for x in values) and values[0] >= 0
    return rate if sound else None


@dataclass(frozen=True)
class _Configuration:
    """One configuration: its rate and CPU use, and its trials."""

    config: Config
    samples_per_s: Interval | None = None
    cpu_percent_of_allotted: float | None = None
    trials: list[str] = field(default_factory=list)
    not_measured: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Best:
    """The best configuration that the run names."""

    config: Config
    samples_per_s: Interval


@dataclass(frozen=True)
class _Sentence:
    """The headline of the verdict or of a comparison."""

    headline: str


@dataclass(frozen=True)
class _Plan:
    """The swept axes."""

    axes: dict[str, list[Scalar]]


@dataclass(frozen=True, kw_only=True)
class _Fields:
    """The fields of `run.json` that a list needs; other fields are ignored."""

    name: str
    started_at: str
    complete: bool
    plan: _Plan
    configurations: list[_Configuration]
    best: _Best | None
    verdict: _Sentence
    kind: Kind = "sweep"
    comparison: _Sentence | None = None
    not_measured: dict[str, str] = field(default_factory=dict)


_WANTED = (*_Fields.__dataclass_fields__, "schema_version")
_ADDED = {"comparison"}
"""Fields that runs of earlier versions lack."""


def _read_fields(file: Path) -> _Fields:
    """Read one `run.json`.

    Raises `RunFileError` with a one-line message, `OSError`, and `ValueError` or `RecursionError` if it is not even
    JSON.
    """
    data = _members(_text(file))
    schema_version(data)
    try:
        return _adapter().validate_python(data)
    except ValidationError as error:
        raise RunFileError(f"run.json: {first_problem(error)}") from None


@functools.cache
def _adapter() -> TypeAdapter[_Fields]:
    return TypeAdapter(_Fields)


def _text(file: Path) -> str:
    try:
        found = file.stat()
    except FileNotFoundError:
        raise RunFileError(_UNFINISHED) from None
    if not stat.S_ISREG(found.st_mode):
        raise RunFileError("run.json is not a file")
    if found.st_size > MAX_BYTES:
        raise RunFileError(f"run.json is larger than {MAX_BYTES:,} bytes")
    return file.read_text(encoding="utf-8")


def _members(text: str) -> Any:
    """The wanted members of a run; all members if `store.run_json` did not write the file.

    `run_json` writes each member on a separate line, indented by one space, a sequence that no string can contain. This
    is ten times as fast as parsing megabytes of trials. A truncated file lacks its last member, and a full parse
    reports where it ends.
    """
    places = {found[1]: found.end() for found in _MEMBER.finditer(text)}
    if not places.keys() >= set(_WANTED) - _ADDED:
        return json.loads(text)
    decoder = json.JSONDecoder()
    return {name: decoder.raw_decode(text, places[name])[0] for name in _WANTED if name in places}
