"""Writes a run folder during the run."""

from __future__ import annotations

import json
import os
import re
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from shlex import quote
from typing import IO

from loaderbench.errors import UsageError
from loaderbench.new_files import free_place, hold, whole_file
from loaderbench.records import Readings, RunRecord, Trial, to_dict
from loaderbench.store.parquet import BATCHES_FILE, note_without_parquet, write_batches

RUN_FILE, TRIALS_FILE, TIMELINE_FILE, PAGE_FILE = "run.json", "trials.jsonl", "timeline.parquet", "report.html"
LOGS_FOLDER = "logs"
TIMELINE_COLUMNS = ("trial", "t_s", "metric", "value")
MOST_NAME_BYTES = 200  # of a folder named after a suite; file systems allow 255


class Store:
    """Writes one run folder. The constructor checks that it is writable, before anything is measured."""

    def __init__(self, folder: Path, *, again: bool = False, resumable: bool = True) -> None:
        """Create the folder, or continue in an existing one if `again`. `resumable`: `run --resume` can continue it."""
        self.folder = folder
        self._made, self._appended, self._resumable = not folder.exists(), again, resumable
        with _one_line_errors(folder):
            if not again and folder.exists() and any(folder.iterdir()):
                raise UsageError(f"{folder}: folder exists and is not empty; choose a new one with --out")
            (folder / LOGS_FOLDER).mkdir(parents=True, exist_ok=True)
            self._trials = self._open_trials()

    def keep_only(self, trials: Iterable[Trial]) -> None:
        """Start over with these trials; failed trials and those of later steps are measured again.

        Until `forget_earlier`, the earlier files are kept as `run.json.earlier` and `trials.jsonl.earlier`.
        """
        self._trials.close()
        with _one_line_errors(self.folder / TRIALS_FILE):
            for name in (RUN_FILE, TRIALS_FILE):
                with suppress(FileNotFoundError):
                    shutil.copyfile(self.folder / name, self.folder / f"{name}.earlier")
            self._write(TRIALS_FILE, "".join(map(_line, trials)))
            self._trials = self._open_trials()

    def forget_earlier(self) -> None:
        """Remove the earlier files."""
        for name in (RUN_FILE, TRIALS_FILE):
            (self.folder / f"{name}.earlier").unlink(missing_ok=True)

    def _open_trials(self) -> IO[str]:
        """Open the file of trials for appending, with an exclusive lock."""
        file = (self.folder / TRIALS_FILE).open("a", encoding="utf-8")
        if hold(file) is False:
            file.close()
            message = "another run is writing to this folder; wait for it, or choose a new one with --out"
            raise UsageError(f"{self.folder}: {message}")
        return file

    def log(self, trial_id: str) -> Path:
        """The file for a trial's output, as an absolute path: a trial can work in another folder."""
        return (self.folder / LOGS_FOLDER / f"{trial_id}.log").absolute()

    def append(self, trial: Trial) -> None:
        """Append a trial and sync it to disk."""
        with _one_line_errors(self.folder / TRIALS_FILE, self._how_to_continue):
            self._trials.write(_line(trial))
            self._trials.flush()
            os.fsync(self._trials.fileno())
        self._appended = True

    def write_run(self, run: RunRecord) -> Path:
        """Write `run.json` atomically."""
        return self._write(RUN_FILE, run_json(run), self._how_to_continue)

    @property
    def _how_to_continue(self) -> str:
        """What is kept, and what to do once the folder is writable again; empty if it has no trial yet."""
        if not self._appended:
            return ""
        if not self._resumable:
            return f"results so far are in {TRIALS_FILE}"
        return f"results so far are kept; once fixed, continue with --resume {quote(str(self.folder))}"

    def write_page(self, html: str) -> Path:
        """Write `report.html` atomically."""
        again = f"loaderbench report {quote(str(self.folder))}"
        kept = f"results are in {RUN_FILE}; once fixed, build the report with `{again}`"
        return self._write(PAGE_FILE, html, kept)

    def write_timeline(self, readings: Readings) -> Path:
        """Write the monitors' readings and the kept batches as Parquet files, if pyarrow works."""
        if note_without_parquet():
            return self.folder / TIMELINE_FILE
        import pyarrow
        from pyarrow import parquet

        columns = dict(zip(TIMELINE_COLUMNS, _columns(readings), strict=True))
        types = (pyarrow.string(), pyarrow.float64(), pyarrow.string(), pyarrow.float64())
        schema = pyarrow.schema(list(zip(TIMELINE_COLUMNS, types, strict=True)))
        table = pyarrow.table(columns, schema=schema)
        kept = f"results are in {RUN_FILE}"
        place = self._replace(TIMELINE_FILE, lambda part: parquet.write_table(table, part, compression="zstd"), kept)
        if readings.batches:
            self._replace(BATCHES_FILE, lambda part: write_batches(part, readings.batches), kept)
        else:  # a resumed run may have the batches of its earlier call
            with _one_line_errors(self.folder / BATCHES_FILE):
                (self.folder / BATCHES_FILE).unlink(missing_ok=True)
        return place

    def discard(self) -> None:
        """Remove the folder if nothing was measured; the output of trials is kept."""
        self.close()
        trials = self.folder / TRIALS_FILE
        if trials.exists() and trials.stat().st_size == 0:
            for name in (TRIALS_FILE, RUN_FILE):
                (self.folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # a trial in progress has left its log
                (self.folder / LOGS_FOLDER).rmdir()
            if self._made:
                with suppress(OSError):
                    self.folder.rmdir()

    def close(self) -> None:
        """Close `trials.jsonl`."""
        with suppress(OSError):  # a full disk was already reported on append
            self._trials.close()

    def _write(self, name: str, text: str, kept: str = "") -> Path:
        return self._replace(name, lambda part: part.write_text(text, encoding="utf-8"), kept)

    def _replace(self, name: str, write: Callable[[Path], object], kept: str = "") -> Path:
        """Write a file atomically: if `write` fails or the process ends, an earlier file is kept."""
        path = self.folder / name
        with _one_line_errors(path, kept), whole_file(path) as part:
            write(part)
        return path


def _columns(readings: Readings) -> tuple[list[str], array[float], list[str], array[float]]:
    """The trial, seconds, metric and value of every reading, as columns of equal length."""
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
def _one_line_errors(path: Path, kept: str = "") -> Iterator[None]:
    """Convert an `OSError` to a one-line `UsageError` with the reason and what is `kept`."""
    try:
        yield
    except OSError as error:
        message = f"{path}: cannot write: {error.strerror or error}"
        raise UsageError(f"{message}; {kept}" if kept else message) from None


def new_run_folder(name: str, parent: Path = Path("reports")) -> Path:
    """A path `<parent>/<suite>-<UTC time>` that does not exist yet."""
    slug = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:60] or "suite"
    slug = slug.encode()[:MOST_NAME_BYTES].decode(errors="ignore")
    return free_place(parent / f"{slug}-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}")


def run_json(run: RunRecord) -> str:
    """The text of `run.json`, in ASCII because a file name can be invalid Unicode."""
    return json.dumps(to_dict(run), allow_nan=False, indent=1)
