"""MLflow: a run with the report as an artifact, and a nested run for each configuration with its rounds.

Live: a run for the script, and a nested run for each loader with its metrics by number of batches.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from loaderbench.errors import MissingError
from loaderbench.exporters.exporter import Exporter, LivePoint

if TYPE_CHECKING:
    from loaderbench.exporters.table import Row
    from loaderbench.records import RunRecord
    from loaderbench.result import Run

_MOST_TEXT = 4_000  # characters in a tag that every store accepts
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
_MOST_PARAM = 500  # characters in a parameter that every store accepts


def _write(run: Run, out: str) -> str:
    with _client(out, f"--out {out}") as client:
        _log(client, run)
    return out


@contextmanager
def _client(out: str, flag: str) -> Iterator[Any]:
    """Open a client of a store.

    Raises `MissingError` if that fails, with a one-line message that begins with the flag.
    """
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # turn off usage reports to the vendor
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions refuse a folder otherwise
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # the default retries for minutes
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    for library in ("mlflow", "urllib3"):
        logging.getLogger(library).setLevel(logging.ERROR)
    try:
        yield MlflowClient(tracking_uri=out)
    except MlflowException as error:
        if urlsplit(out).scheme.partition("+")[0] in _DATABASES and "unsupported uri" in str(error).lower():
            raise MissingError(f"{flag}: a database needs all of MLflow; pip install mlflow") from None
        raise MissingError(f"{flag}: MLflow: {' '.join(str(error).split())[:300]}") from None
    except ModuleNotFoundError as error:  # a dependency that only some addresses need
        raise MissingError(f"{flag}: {error.name} is not installed; pip install mlflow") from None


def _log(client: Any, run: Run) -> None:
    from loaderbench.exporters.table import facts, rows, run_name, summary
    from loaderbench.report.heat_map_picture import heat_map_pictures
    from loaderbench.store import run_json

    record = run.record
    experiment = _experiment(client, record.name)
    tags = {"mlflow.note.content": f"```\n{run}```"[:_MOST_TEXT], "mlflow.source.name": "loaderbench"}
    began, ended = _milliseconds(record)
    parent = client.create_run(experiment, began, tags, run_name(record)).info.run_id
    _batch(client, parent, summary(record), ended, step=0, params=facts(record))
    client.log_text(parent, run.to_html(), "report.html")
    client.log_text(parent, run_json(record), "run.json")
    for metric, picture in heat_map_pictures(run.document):
        client.log_image(parent, picture, f"heat_map_{metric.id}.png")
    for row in rows(record):
        own = client.create_run(experiment, began, {"mlflow.parentRunId": parent}, row.name).info.run_id
        _log_row(client, own, row, ended)
    client.set_terminated(parent, "FINISHED" if record.complete else "KILLED", ended)


def _experiment(client: Any, name: str) -> str:
    known = client.get_experiment_by_name(name)
    return str(known.experiment_id if known else client.create_experiment(name))


def _log_row(client: Any, run_id: str, row: Row, ended: int) -> None:
    from loaderbench.records import format_scalar

    axes = {axis: format_scalar(value) for axis, value in row.config.items()}
    _batch(client, run_id, row.numbers, ended, step=0, params=axes)
    for one in row.rounds:
        named = {f"rounds/{name}": value for name, value in one.numbers.items()}
        _batch(client, run_id, named, ended, step=one.number, params={})
    client.set_terminated(run_id, "FINISHED" if row.numbers else "FAILED", ended)


def _batch(
    client: Any, run_id: str, numbers: Mapping[str, float], at: int, *, step: int, params: Mapping[str, str]
) -> None:
    from mlflow.entities import Metric, Param

    metrics = [Metric(name, value, at, step) for name, value in numbers.items()]
    client.log_batch(run_id, metrics, [Param(name, text[:_MOST_PARAM]) for name, text in params.items()])


def _milliseconds(run: RunRecord) -> tuple[int, int]:
    """Start and end of the run in milliseconds since the epoch."""
    from loaderbench.records.words import moment

    began, ended = moment(run.started_at), moment(run.finished_at)
    began = began or ended
    return (round(began.timestamp() * 1000), round((ended or began).timestamp() * 1000)) if began else (0, 0)


class _LiveRuns:
    """A run for the script, with a nested run for each loader, created at the loader's first point."""

    def __init__(self, out: str, script: str, run: str) -> None:
        with _client(out, f"--live mlflow={out}") as client:
            self._client, self._experiment = client, _experiment(client, script)
            self._parent = self._new_run(run)
        self._runs: dict[str, str] = {}
        self._status = "FINISHED"

    def write(self, points: Sequence[LivePoint]) -> None:
        """Log a step in the run of each loader."""
        self._status = "FAILED"  # until every point is written
        for point in points:
            if point.series not in self._runs:
                self._runs[point.series] = self._new_run(point.series, **{"mlflow.parentRunId": self._parent})
            _batch(self._client, self._runs[point.series], point.numbers, _now(), step=point.batches, params={})
        self._status = "FINISHED"

    def close(self) -> None:
        """Terminate all runs."""
        for run_id in (*self._runs.values(), self._parent):
            self._client.set_terminated(run_id, self._status, _now())

    def _new_run(self, name: str, **tags: str) -> str:
        own = {**tags, "mlflow.source.name": "loaderbench"}
        return str(self._client.create_run(self._experiment, _now(), own, name).info.run_id)


def _now() -> int:
    return round(time.time() * 1000)


EXPORTER = Exporter(
    _write,
    package="mlflow-skinny",
    libraries=("mlflow",),
    next_step="open it with: MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {out}",
    live=_LiveRuns,
    takes_address=True,
)
