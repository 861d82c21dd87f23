"""Access to pyarrow for Parquet, which can fail to import: a new version may need a newer NumPy than is installed."""

from __future__ import annotations

from typing import Any

from loaderbench.errors import MissingError


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
