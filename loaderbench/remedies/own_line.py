"""Titles that name a line of the user's own code: with most of the loading time, or of a part of the loop."""

from __future__ import annotations

from loaderbench.diagnosis.facts import Facts
from loaderbench.records import Hotspot, Limit, LoopLine
from loaderbench.remedies.findings import Diagnosis
from loaderbench.remedies.wording import TITLE_LIMIT

OF_OWN_LINES: tuple[Limit, ...] = ("workers", "oversubscription", "quota")
"""Limits on CPU time that cheaper code relieves, too. Without a line of code to name, their own fixes are enough."""

LEAST_OF_LOOP = 0.1
"""Share of time from which a line outside of the loader is advised."""


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


def step_line_share(facts: Facts) -> float:
    """The share of step time of the line with most of the rest of a step; 0 without one."""
    return facts.rest_share * facts.step_line.share if facts.step_line else 0.0


def between_line_share(facts: Facts) -> float:
    """The share of all time of the line with most of the time between epochs; 0 without one."""
    return facts.between_share * facts.between_line.share if facts.between_line else 0.0


def speed_up_place(line: LoopLine | None, share: float, of_what: str) -> str:
    """`Speed up train.py:44 (59% of step time)`, or without the share if that does not fit."""
    place = line.place if line else ""
    title = f"Speed up {place} ({share:.0%} {of_what})"
    return title if len(title) <= TITLE_LIMIT else f"Speed up {place}"[:TITLE_LIMIT]
