"""Reads the file of a calibration, which `loaderbench export --to calibration` writes."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from loaderbench.errors import MissingError
from loaderbench.records import Calibration


def read_calibration(path: Path) -> Calibration:
    """Read it. Raises `MissingError`, in one line, for a file that is not there or not a calibration."""
    where = f"consumer.calibration: {path}"
    try:
        found = TypeAdapter(Calibration).validate_json(path.read_bytes())
    except OSError as error:
        raise MissingError(f"{where}: {error.strerror}; write one with `loaderbench export --to calibration`") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise MissingError(f"{where}: invalid calibration: {place}: {first['msg']}") from None
    if not found.steps or found.s_per_sample <= 0 or found.fixed_s < 0:
        raise MissingError(f"{where}: invalid calibration: step times must be positive; export it again")
    return found
