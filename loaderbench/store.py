"""The run folder: written as the run goes, read back without executing anything."""

from __future__ import annotations

import json
import os
import re
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from loaderbench.errors import RunFileError, UsageError
from loaderbench.locking import hold
from loaderbench.records import SCHEMA_VERSION, Readings, RunRecord, TimelinePoint, Trial, to_dict

if TYPE_CHECKING:
    import pandas as pd

RUN_FILE, TRIALS_FILE, TIMELINE_FILE, PAGE_FILE = "run.json", "trials.jsonl", "timeline.parquet", "report.html"
MAX_RUN_BYTES = 500_000_000

_TIMELINE_COLUMNS = ("trial", "t_s", "metric", "value")


class Store:
    """Writes one run folder. Creating it finds out whether it can be written to, before anything is measured."""

    def __init__(self, folder: Path, *, again: bool = False) -> None:
        """Make the folder, or go on `again` in one that is there."""
        self.folder = folder
        self._made = not folder.exists()
        with _one_line(folder):
            if not again and folder.exists() and any(folder.iterdir()):
                raise UsageError(f"{folder}: exists and is not empty; give --out a new folder")
            (folder / "logs").mkdir(parents=True, exist_ok=True)
            self._trials = self._opened()

    def keep_only(self, trials: Iterable[Trial]) -> None:
        """Begin again with these trials: what failed, or belongs to a later step, is measured anew."""
        self._trials.close()
        with _one_line(self.folder / TRIALS_FILE):
            self._write(TRIALS_FILE, "".join(map(_line, trials)))
            self._trials = self._opened()

    def _opened(self) -> IO[str]:
        """The file of trials, to append to, and ours alone."""
        file = (self.folder / TRIALS_FILE).open("a", encoding="utf-8")
        if not hold(file):
            file.close()
            raise UsageError(f"{self.folder}: a run is under way in it; wait for its end, or give --out a new folder")
        return file

    def log(self, trial_id: str) -> Path:
        """Where a trial's output goes."""
        return self.folder / "logs" / f"{trial_id}.log"

    def append(self, trial: Trial) -> None:
        """Add a trial and wait until the disk has it."""
        kept = f"what was measured before is kept, and --resume {self.folder} goes on when it can be"
        with _one_line(self.folder / TRIALS_FILE, kept):
            self._trials.write(_line(trial))
            self._trials.flush()
            os.fsync(self._trials.fileno())

    def write_run(self, run: RunRecord) -> Path:
        """Write `run.json` at once or not at all."""
        return self._write(RUN_FILE, run_json(run))

    def write_page(self, html: str) -> Path:
        """Write `report.html` at once or not at all."""
        kept = f"{RUN_FILE} has what was measured: `loaderbench report {self.folder}` draws it when it can be"
        return self._write(PAGE_FILE, html, kept)

    def write_timeline(self, readings: Readings) -> Path:
        """Write every reading of the monitors as Parquet."""
        import pyarrow
        from pyarrow import parquet

        columns = dict(zip(_TIMELINE_COLUMNS, _columns(readings), strict=True))
        types = (pyarrow.string(), pyarrow.float64(), pyarrow.string(), pyarrow.float64())
        schema = pyarrow.schema(list(zip(_TIMELINE_COLUMNS, types, strict=True)))
        with _one_line(self.folder / TIMELINE_FILE):
            parquet.write_table(pyarrow.table(columns, schema=schema), self.folder / TIMELINE_FILE, compression="zstd")
        return self.folder / TIMELINE_FILE

    def discard(self) -> None:
        """Remove the folder where nothing was measured; what a trial wrote stays."""
        self.close()
        if (self.folder / TRIALS_FILE).stat().st_size == 0:
            for name in (TRIALS_FILE, RUN_FILE):
                (self.folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # a trial that was under way has left its log
                (self.folder / "logs").rmdir()
            if self._made:
                with suppress(OSError):
                    self.folder.rmdir()

    def close(self) -> None:
        """Close `trials.jsonl`."""
        with suppress(OSError):  # what a full disk did not take was told when it was appended
            self._trials.close()

    def _write(self, name: str, text: str, kept: str = "") -> Path:
        path = self.folder / name
        part = path.with_name(f".{name}.part")
        with _one_line(path, kept):
            try:
                part.write_text(text, encoding="utf-8")
                part.replace(path)
            except OSError:
                part.unlink(missing_ok=True)
                raise
        return path


def _columns(readings: Readings) -> tuple[list[str], array[float], list[str], array[float]]:
    """Trials, seconds, metrics and values, each of one length."""
    trials, seconds, metrics, values = list[str](), array("d"), list[str](), array("d")
    for trial in readings.trials:
        for metric, (at_s, read) in readings.of(trial).items():
            trials += [trial] * len(at_s)
            metrics += [metric] * len(at_s)
            seconds.extend(at_s)
            values.extend(read)
    return trials, seconds, metrics, values


def _line(trial: Trial) -> str:
    return json.dumps(to_dict(trial), allow_nan=False) + "\n"


@contextmanager
def _one_line(path: Path, kept: str = "") -> Iterator[None]:
    """Say in one line that a disk is full, or whatever else keeps a file from being written; and what is `kept`."""
    try:
        yield
    except OSError as error:
        said = f"{path}: cannot be written to: {error.strerror or error}"
        raise UsageError(f"{said}; {kept}" if kept else said) from None


def new_run_folder(name: str, parent: Path = Path("reports")) -> Path:
    """`<parent>/<suite>-<UTC time>`, not yet there."""
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60] or "suite"
    stem = f"{slug}-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"
    taken = (parent / f"{stem}{suffix}" for suffix in ("", *(f"-{number}" for number in range(2, 1000))))
    return next(folder for folder in taken if not folder.exists())


def run_json(run: RunRecord) -> str:
    """The text of `run.json`: ASCII, so that a file name that is no Unicode can stand in it."""
    return json.dumps(to_dict(run), allow_nan=False, indent=1)


def read_run(path: Path) -> RunRecord:
    """Read a run folder or its `run.json`. Raises `RunFileError`, in one line."""
    file = path / RUN_FILE if path.is_dir() else path
    data = _read_json(file)
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        later = isinstance(version, int) and version > SCHEMA_VERSION
        advice = ": a later loaderbench wrote it, and reads it" if later else ""
        raise RunFileError(f"{file}: schema_version is {version!r}; this version reads {SCHEMA_VERSION}{advice}")
    try:
        return TypeAdapter(RunRecord).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RunFileError(f"{file}: {where}: {first['msg'].lower()}") from None


def read_trials(folder: Path) -> list[Trial]:
    """The trials as each was written when it ended; a line that cannot be read costs that line only."""
    adapter, found = TypeAdapter(Trial), list[Trial]()
    try:
        lines = (folder / TRIALS_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise RunFileError(f"{folder / TRIALS_FILE}: cannot be read: {error.strerror or error}") from None
    for line in lines:
        with suppress(ValueError, RecursionError):  # pydantic's errors are of values too
            found.append(adapter.validate_python(json.loads(line, **_NUMBERS)))
    return found


def read_timeline(path: Path) -> Readings:
    """Read the timeline beside a run; empty where there is none. Raises `RunFileError`, in one line."""
    file = (path if path.is_dir() else path.parent) / TIMELINE_FILE
    found = Readings()
    if not file.is_file():
        return found
    from pyarrow import ArrowException, parquet

    try:
        table = parquet.ParquetFile(file).read(columns=list(_TIMELINE_COLUMNS)).combine_chunks()  # without pandas
        if not table.num_rows:
            return found
        columns = [table[name].chunk(0).to_numpy() for name in ("t_s", "value")]
        for (trial, metric), rows in _rows_of_series(table):
            for own, column in zip(found.series(trial, metric), columns, strict=True):
                own.frombytes(column[rows].astype("f8").tobytes())
    except (ArrowException, KeyError, OSError, TypeError, ValueError) as error:
        raise RunFileError(f"{file}: cannot be read: {str(error).splitlines()[0]}") from None
    return found


def _rows_of_series(table: Any) -> Iterator[tuple[tuple[str, str], Any]]:
    """Each trial and metric of a timeline with the numbers of its rows, in their order."""
    import numpy as np

    trials, metrics = (table[name].chunk(0).dictionary_encode() for name in ("trial", "metric"))
    keys = trials.indices.to_numpy() * len(metrics.dictionary) + metrics.indices.to_numpy().astype("i8")
    order = np.argsort(keys, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        trial, metric = divmod(int(keys[rows[0]]), len(metrics.dictionary))
        yield (str(trials.dictionary[trial]), str(metrics.dictionary[metric])), rows


def trials_frame(trials: Iterable[Trial]) -> pd.DataFrame:
    """One row per trial: its axes as columns of their own, then every field that is a plain value."""
    import pandas as pd

    return pd.DataFrame([_row(trial) for trial in trials])


def timeline_frame(points: Iterable[TimelinePoint]) -> pd.DataFrame:
    """One row per reading: `trial`, `t_s`, `metric`, `value`."""
    import pandas as pd

    return pd.DataFrame([to_dict(point) for point in points], columns=list(_TIMELINE_COLUMNS))


def _row(trial: Trial) -> dict[str, Any]:
    fields = to_dict(trial)
    config, failure = fields.pop("config"), fields.pop("failure")
    gpus = fields.pop("gpus")
    plain = {name: value for name, value in fields.items() if not isinstance(value, dict | list | tuple)}
    device = {
        f"gpu{gpu['index']}_{name}": gpu[name] for gpu in gpus for name in ("utilization_percent", "memory_used_bytes")
    }
    return {**config, **plain, **device, "failure": failure and failure["kind"]}


def _read_json(file: Path) -> Any:
    try:
        if file.stat().st_size > MAX_RUN_BYTES:
            raise RunFileError(f"{file}: is larger than {MAX_RUN_BYTES:,} bytes")
        return json.loads(file.read_text(encoding="utf-8"), **_NUMBERS)
    except FileNotFoundError:
        raise RunFileError(f"{file}: no such run; give a run folder or its {RUN_FILE}") from None
    except OSError as error:
        raise RunFileError(f"{file}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise RunFileError(f"{file}: is not the JSON of a run: {str(error).splitlines()[0]}") from None


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number of JSON")


def _believable(number: float, text: str) -> Any:
    """No run holds numbers beyond these, and arithmetic on them would leave what a float can hold."""
    if number and not _SMALLEST < abs(number) < _LARGEST:
        raise ValueError(f"{text[:20]} is no number that a run can hold")
    return number


_SMALLEST, _LARGEST = 1e-30, 1e30
_NUMBERS: dict[str, Any] = {
    "parse_constant": _refuse,
    "parse_float": lambda text: _believable(float(text), text),
    "parse_int": lambda text: _believable(int(text), text),
}
