"""Places in the user's own code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class CodeLine:
    """A line of the user's own code that makes a loader. `by_library`: it calls a library that makes it."""

    file: str
    line: int
    by_library: bool = False

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"
