"""Parquet files of a run: access to pyarrow, and `batches.parquet`, with one row per batch of a trial.

pyarrow can fail to import: a new version may need a newer NumPy than is installed. A row of `batches.parquet` says when
a batch was made and taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from loaderbench.errors import MissingError, RunFileError
from loaderbench.records import BatchTimes, to_dict

if TYPE_CHECKING:
    import pandas as pd


BATCHES_FILE = "batches.parquet"
BATCH_COLUMNS = ("trial", *(one.name for one in fields(BatchTimes)))


def parquet() -> Any:
    """Import `pyarrow.parquet`. Raises `MissingError`, with a one-line message, if that fails."""
    try:
        from pyarrow import parquet as found
    except ImportError as error:
        raise MissingError(_message(error)) from None
    return found


def note_without_parquet() -> list[str]:
    """A note that the timeline of a run is not saved, and why; empty if it is."""
    try:
        parquet()
    except MissingError as error:
        return [f"the timeline was not saved: {error}"]
    return []


def _message(error: ImportError) -> str:
    return f"{str(error).splitlines()[0]}; install a compatible version of pyarrow"


def write_batches(file: Path, batches: Mapping[str, Sequence[BatchTimes]]) -> None:
    """Write the batches of each trial. Raises `OSError`."""
    writable = parquet()
    import pyarrow

    rows = [to_dict(batch) | {"trial": trial} for trial, own in batches.items() for batch in own]
    writable.write_table(pyarrow.Table.from_pylist(rows, schema=_schema()), file, compression="zstd")


def read_batches(file: Path) -> dict[str, tuple[BatchTimes, ...]]:
    """Read the batches of each trial; empty without the file. Raises `RunFileError`, with a one-line message."""
    if not file.is_file():
        return {}
    readable = parquet()
    from pyarrow import ArrowException

    try:
        rows = readable.ParquetFile(file).read(columns=list(BATCH_COLUMNS)).cast(_schema()).to_pylist()
        grouped = groupby(rows, lambda row: str(row.pop("trial")))
        return {trial: tuple(map(_batch, own)) for trial, own in grouped}
    except (ArrowException, KeyError, OSError, TypeError, ValueError) as error:
        raise RunFileError(f"{file}: cannot be read: {str(error).splitlines()[0]}") from None


def batches_frame(batches: Mapping[str, Sequence[BatchTimes]]) -> pd.DataFrame:
    """One row per batch: `trial`, and every field of `BatchTimes`."""
    import pandas as pd

    rows = [{"trial": trial} | to_dict(batch) for trial, own in batches.items() for batch in own]
    return pd.DataFrame(rows, columns=list(BATCH_COLUMNS))


def _batch(row: dict[str, Any]) -> BatchTimes:
    """Convert a row to a record; pyarrow reads a map as pairs, or in later versions as a dictionary."""
    return BatchTimes(**{**row, "stages_s": dict(row["stages_s"])})


def _schema() -> Any:
    """The Parquet schema: one column per field of `BatchTimes`, nullable if its type allows `None`."""
    import pyarrow

    declared = {"trial": str, **get_type_hints(BatchTimes)}
    return pyarrow.schema(
        [pyarrow.field(name, _column(kind), nullable=NoneType in get_args(kind)) for name, kind in declared.items()]
    )


def _column(declared: Any) -> Any:
    """The Arrow type of a column. Raises `KeyError` for a type that no field has so far."""
    import pyarrow

    if get_origin(declared) is dict:
        return pyarrow.map_(*map(_column, get_args(declared)))
    plain = next((kind for kind in get_args(declared) if kind is not NoneType), declared)
    return {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}[plain]
