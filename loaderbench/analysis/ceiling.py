"""Samples/s with loading made free, from cached batches replayed where a consumer's pace is its own."""

from __future__ import annotations

from loaderbench.analysis.rungs import REPLAYED_TO
from loaderbench.analysis.verdict import Subject, describe_ceiling
from loaderbench.records import Ceiling, Ladder


def find_ceiling(
    ladder: Ladder | None, why_no_ladder: str, subject: Subject | None, consumer: str, demand: float
) -> tuple[Ceiling | None, str]:
    """The ceiling of any consumer, or why there is none.

    Headspace is (measured - ceiling) / measured in time per batch. Source: SPDL's optimisation guide.
    """
    if subject is None or consumer not in REPLAYED_TO:
        return describe_ceiling(subject, consumer, demand)
    rung = next((found for found in ladder.rungs if found.name == "replay_host"), None) if ladder else None
    if rung is None or rung.samples_per_s is None:
        why = rung.not_measured.get("samples_per_s") if rung else why_no_ladder
        return None, f"cached batches were not replayed: {why}"
    rate, rounds = rung.samples_per_s, len(rung.trials)
    return Ceiling(
        samples_per_s=rate.est,
        headspace=min(1.0, max(0.0, 1 - subject.samples_per_s.est / rate.est)),
        basis=f"cached batches replayed, {rounds} round{'s' if rounds > 1 else ''}",
        samples_per_s_interval=rate if rate.lo is not None else None,
    ), ""
