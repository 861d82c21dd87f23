"""What to change, one file per remedy; only what this run measured is recommended.

`REMEDIES` is the order in which the page shows them.
"""

from __future__ import annotations

from loaderbench.records import Recommendation
from loaderbench.remedies import (
    best_combination,
    fewer_workers,
    larger_batch,
    main_process_loading,
    more_workers,
    pin_memory,
    unpin_memory,
)
from loaderbench.remedies.base import Findings, Remedy

__all__ = ["REMEDIES", "Findings", "Remedy", "recommend"]

REMEDIES: tuple[Remedy, ...] = (
    best_combination.REMEDY,
    main_process_loading.REMEDY,
    more_workers.REMEDY,
    fewer_workers.REMEDY,
    larger_batch.REMEDY,
    pin_memory.REMEDY,
    unpin_memory.REMEDY,
)


def recommend(findings: Findings) -> tuple[Recommendation, ...]:
    """Ask every remedy; what applies stands first, then what is fine already, then what could not be checked."""
    standing = {"open": 0, "already_ok": 1, "not_checked": 2}
    found = [answer for remedy in REMEDIES if (answer := remedy.recommend(findings)) is not None]
    return tuple(sorted(found, key=lambda answer: standing[answer.status]))
