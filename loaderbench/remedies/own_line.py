"""Titles that name the line of the user's own code with most of the loading time."""

from __future__ import annotations

from loaderbench.records import Hotspot, Limit
from loaderbench.remedies.findings import Diagnosis
from loaderbench.remedies.wording import TITLE_LIMIT

OF_OWN_LINES: tuple[Limit, ...] = ("workers", "oversubscription", "quota")
"""Limits on CPU time that cheaper code relieves, too. Without a line of code to name, their own fixes are enough."""


def own_line(found: Diagnosis) -> Hotspot | None:
    """The line of the user's own code with most of the loading time, if it is mostly in the verdict's stage."""
    line = found.facts.hot_line
    return line if line and line.stage == found.verdict.stage else None


def is_own_python(found: Diagnosis) -> bool:
    """Whether one line of the user's own code takes most of the loading time without calling a library."""
    line = own_line(found)
    return line is not None and not line.below


def speed_up(found: Diagnosis, otherwise: str) -> str:
    """`Speed up data.py:28 (54% of loading time)`; the other title without such a line, or if it does not fit."""
    line = own_line(found)
    title = f"Speed up {line.file}:{line.line} ({line.share:.0%} of loading time)" if line else otherwise
    return title if len(title) <= TITLE_LIMIT else otherwise
