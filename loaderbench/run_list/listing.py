"""Finds the runs of a folder and puts the newest in order; one that cannot be read is listed with the reason."""

from __future__ import annotations

import heapq
import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from loaderbench.errors import RunFileError
from loaderbench.records import Config, Interval, Kind, varying
from loaderbench.run_list.fields import Fields, read_fields

DEFAULT_FOLDER = Path("reports")
MOST_RUNS = 200

_RUN_FILE, _TRIALS_FILE, _PAGE_FILE = "run.json", "trials.jsonl", "report.html"
_MOST_SAMPLES_PER_S = 1e12  # no loader is faster: what is larger is no rate
_TIME_IN_NAME = re.compile(r"\d{8}T\d{6}Z")


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One run. `config` and `samples_per_s` are the best's, of a profile the only ones; `reason`: why there are none.

    `own_config` is the configuration without the axes that had one value; `tried` and `measured` count configurations.
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
    """A folder that holds a run which cannot be shown; `reason` is one line."""

    folder: str
    has_page: bool
    reason: str


@dataclass(frozen=True)
class RunList:
    """The runs of a folder, the newest first; `left_out` counts the older ones that were not read."""

    runs: tuple[RunSummary, ...]
    unreadable: tuple[UnreadableRun, ...] = ()
    left_out: int = 0


def list_runs(parent: Path) -> RunList:
    """Read the newest runs of a folder. Raises `OSError` where the folder itself cannot be listed, and nothing else."""
    dated = list(_dated(parent))
    newest = [name for _, name in heapq.nlargest(MOST_RUNS, dated)]
    found = [read_summary(parent / name) for name in newest]
    runs = sorted((run for run in found if isinstance(run, RunSummary)), key=_age)
    unreadable = tuple(run for run in found if isinstance(run, UnreadableRun))
    return RunList(tuple(runs), unreadable, len(dated) - len(found))


def read_summary(folder: Path) -> RunSummary | UnreadableRun:
    """Read one run, or say in one line why that is not possible."""
    has_page = False
    try:
        has_page = (folder / _PAGE_FILE).is_file()
        return _summary(folder, has_page, read_fields(folder / _RUN_FILE))
    except RunFileError as error:
        return UnreadableRun(folder.name, has_page, str(error))
    except OSError as error:
        return UnreadableRun(folder.name, has_page, f"cannot be read: {error.strerror or error}")
    except (ValueError, RecursionError) as error:
        said = str(error).partition("\n")[0]
        return UnreadableRun(folder.name, has_page, f"{_RUN_FILE} is not the JSON of a run: {said}")


def _dated(parent: Path) -> Iterator[tuple[float, str]]:
    """Every folder that holds a run or the beginning of one, with the time by which it is old or new."""
    with os.scandir(parent) as entries:
        for entry in entries:
            with suppress(OSError):  # a link that leads nowhere is no run
                if entry.is_dir() and (written := _written(Path(entry.path))) is not None:
                    yield _time_in(entry.name) or written, entry.name


def _written(folder: Path) -> float | None:
    """When its files were written; a folder that may not be looked into could be a run."""
    for name in (_RUN_FILE, _TRIALS_FILE):
        try:
            return (folder / name).stat().st_mtime
        except FileNotFoundError:
            continue
        except PermissionError:
            return folder.stat().st_mtime
    return None


def _time_in(name: str) -> float | None:
    """The time that a run folder has in its name: other than the files' it survives copying."""
    written = _TIME_IN_NAME.search(name)
    with suppress(ValueError):
        if written:
            return datetime.strptime(written[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc).timestamp()
    return None


def _age(run: RunSummary) -> tuple[bool, float, str]:
    """Orders the newest first, and those without a date last."""
    return run.started is None, -run.started.timestamp() if run.started else 0.0, run.folder


def _summary(folder: Path, has_page: bool, found: Fields) -> RunSummary:
    config, rate = _result(found)
    own = varying(config, found.plan.axes) if config is not None else None
    return RunSummary(
        folder=folder.name,
        has_page=has_page,
        name=found.name,
        kind=found.kind,
        started=_moment(found.started_at),
        complete=found.complete,
        headline=found.verdict.headline,
        config=config,
        own_config=own or config,
        samples_per_s=rate,
        reason=None if rate else _reason(found),
        tried=sum(bool(one.trials) for one in found.configurations),
        measured=sum(_usable(one.samples_per_s) is not None for one in found.configurations),
    )


def _result(found: Fields) -> tuple[Config | None, Interval | None]:
    """The best of a sweep; of a profile, which has none to compare it with, what was measured."""
    if found.kind == "sweep":
        return (found.best.config, _usable(found.best.samples_per_s)) if found.best else (None, None)
    only = next(iter(found.configurations), None)
    return (only.config, _usable(only.samples_per_s)) if only else (None, None)


def _reason(found: Fields) -> str:
    """Why there is no rate, as the run says it."""
    reasons = [one.not_measured.get("samples_per_s") for one in found.configurations]
    if not any(one.trials for one in found.configurations):
        return "no trial was run"
    if not any(one.samples_per_s for one in found.configurations):
        return next(filter(None, reasons), "every trial failed")
    return found.not_measured.get("best") or "the run names no best configuration with a rate"


def _usable(rate: Interval | None) -> Interval | None:
    """The rate where all of it is a number that a loader can have."""
    values = [] if rate is None else [x for x in (rate.est, rate.lo, rate.hi) if x is not None]
    sound = values and all(math.isfinite(x) and abs(x) <= _MOST_SAMPLES_PER_S for x in values) and values[0] >= 0
    return rate if sound else None


def _moment(text: str) -> datetime | None:
    """A time in UTC, or `None` where the text is no time."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None
