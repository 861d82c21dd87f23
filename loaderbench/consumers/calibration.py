"""Reads the file of a calibration, which `loaderbench export --to calibration` writes."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from loaderbench.errors import MissingError, printable
from loaderbench.records import Calibration

_NAMES = ("run", "device", "model", "precision")
"""What a terminal shows of the file."""


def read_calibration(path: Path) -> Calibration:
    """Read it. Raises `MissingError`, in one line, for a file that is not there or not a calibration."""
    where = f"consumer.calibration: {path}"
    try:
        found = TypeAdapter(Calibration).validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise MissingError(f"{where}: invalid calibration: {place}: {first['msg']}") from None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise MissingError(f"{where}: {said}; write one with `loaderbench export --to calibration`") from None
    if not _is_sound(found):
        raise MissingError(f"{where}: invalid calibration: step times must be positive; export it again")
    names: dict[str, Any] = {name: printable(said) for name in _NAMES if (said := getattr(found, name))}
    return replace(found, **names)


def _is_sound(found: Calibration) -> bool:
    """Whether every batch takes a finite time: JSON as Python writes it may hold `NaN` and `Infinity`."""
    if min((step.batch_size for step in found.steps), default=0) < 1 or min(found.fixed_s, found.s_per_sample) < 0:
        return False
    if found.fixed_s + found.s_per_sample == 0:
        return False
    return all(map(isfinite, (found.fixed_s, found.s_per_sample, found.samples_per_s)))
