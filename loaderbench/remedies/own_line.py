"""Fixes that name a line of the user's own code: with most of the loading time, or of a part of the loop."""

from __future__ import annotations

from collections.abc import Callable, Collection

from loaderbench.diagnosis.facts import Facts
from loaderbench.records import Hotspot, Limit, LoopLine, Stage
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis
from loaderbench.remedies.wording import TITLE_LIMIT

_FULL_CPUS: tuple[Limit, ...] = ("cpu", "neighbors")
_CPU_TIME: tuple[Limit, ...] = (*_FULL_CPUS, "workers", "oversubscription", "quota")
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


def costly_code(id_: str, title: str, stages: Collection[Stage]) -> CauseRemedy:
    """The fix for costly code in these stages. Its title is `Speed up data.py:28 (54% of loading time)` with a line."""

    def title_for(found: Diagnosis) -> str:
        line = own_line(found)
        return _speed_up(f"{line.file}:{line.line}", f"{line.share:.0%} of loading time", title) if line else title

    return CauseRemedy(
        id=id_,
        title=title,
        title_for=title_for,
        applies=lambda found: found.named(stages=stages, limits=_CPU_TIME if own_line(found) else _FULL_CPUS),
    )


def costly_line(
    id_: str, title: str, line_of: Callable[[Facts], LoopLine | None], part_of: Callable[[Facts], float], of_what: str
) -> CauseRemedy:
    """The fix for a line outside of the loader that takes longer than the data wait.

    `part_of` returns the share of time of the line's part of the loop, and `of_what` says what time that is.
    """

    def share(found: Diagnosis) -> float:
        line = line_of(found.facts)
        return part_of(found.facts) * line.share if line else 0.0

    def title_for(found: Diagnosis) -> str:
        line = line_of(found.facts)
        return _speed_up(line.place, f"{share(found):.0%} {of_what}", title) if line else title

    return CauseRemedy(
        id=id_,
        title=title,
        title_for=title_for,
        applies=lambda found: (
            found.verdict.bound in ("input", "compute") and share(found) >= max(LEAST_OF_LOOP, found.facts.wait_share)
        ),
    )


def _speed_up(place: str, share: str, otherwise: str) -> str:
    """`Speed up train.py:44 (59% of step time)`, or the other title if that does not fit."""
    title = f"Speed up {place} ({share})"
    return title if len(title) <= TITLE_LIMIT else otherwise
