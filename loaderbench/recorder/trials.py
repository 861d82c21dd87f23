"""From what was read of a process to the record of a trial, with a reason for every field that is `None`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from loaderbench.records import LoaderInside, LoopTimes, Reasons, ResourceUse, Trial

_NO_REASON_NEEDED = ("failure", "isolation")
_ALWAYS = {"sampled": "nothing was left out", "time_slices": "it was measured in one piece"}


def completed_trial(trial: Trial, *parts: LoopTimes | LoaderInside | ResourceUse, default: str) -> Trial:
    """The trial with all that was measured; a part that comes later has the last word on why something is missing."""
    found: dict[str, Any] = {}
    reasons: Reasons = {}
    for part in parts:
        found |= {one.name: getattr(part, one.name) for one in fields(part)}
        reasons |= part.not_measured
    return with_reasons(replace(trial, **{**found, "status": "completed"}), default, reasons)


def with_reasons(trial: Trial, default: str, known: Mapping[str, str] | None = None) -> Trial:
    """The trial with a reason for each field that is `None`: the one that is known, or the default."""
    missing = [name for name, value in vars(trial).items() if value is None and name not in _NO_REASON_NEEDED]
    reasons = {name: (known or {}).get(name) or _ALWAYS.get(name) or default for name in missing}
    return replace(trial, not_measured=reasons)
