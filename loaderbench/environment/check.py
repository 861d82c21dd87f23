"""One line of what `loaderbench doctor` says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Check:
    """What was looked at, how it stands, and what to do where it does not stand well."""

    name: str
    state: Literal["ok", "warn", "bad"]
    said: str
    fix: str = ""
