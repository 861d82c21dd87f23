"""pyarrow, which writes and reads Parquet, where it works: a later version may need a later NumPy than is installed."""

from __future__ import annotations

from typing import Any

from loaderbench.errors import MissingError


def parquet() -> Any:
    """`pyarrow.parquet`. Raises `MissingError`, in one line, where it cannot be imported."""
    try:
        from pyarrow import parquet as found
    except ImportError as error:
        raise MissingError(_said(error)) from None
    return found


def note_without_parquet() -> list[str]:
    """A note that the timeline of a run is not saved, and why; none where it is."""
    try:
        parquet()
    except MissingError as error:
        return [f"the timeline was not saved: {error}"]
    return []


def _said(error: ImportError) -> str:
    return f"{str(error).splitlines()[0]}; install a version of pyarrow that fits"
