"""Samples/s with loading made free, from cached batches replayed where a consumer's pace is its own."""

from __future__ import annotations

from loaderbench.consumers import consumer_kind
from loaderbench.diagnosis.verdict import Subject
from loaderbench.records import Ceiling, Isolation

NOTHING_BUT_WAITING = 0.999  # from this share on the rest of the loop is too short to divide by
_INTERVAL = "samples_per_s_interval"


def find_ceiling(
    isolation: Isolation | None, why_no_isolation: str, subject: Subject | None, consumer: str, demand: float
) -> tuple[Ceiling | None, str]:
    """The ceiling of any consumer, or why there is none.

    Headspace is (measured - ceiling) / measured in time per batch. Source: SPDL's optimisation guide.
    """
    if subject is None:
        return None, "nothing was measured"
    kind = consumer_kind(consumer)
    if kind.of_loop:
        return _loop_ceiling(subject)
    if kind.capped:
        reasons = {_INTERVAL: "it is given and not measured"}
        headspace, basis = _headspace(subject, demand), f"the demand of {kind.who}"
        return Ceiling(samples_per_s=demand, headspace=headspace, basis=basis, not_measured=reasons), ""
    if not kind.consumes:
        return None, "without a consumer there is none"
    replayed = next((run for run in isolation.runs if run.name == "replay_host"), None) if isolation else None
    if replayed is None or replayed.samples_per_s is None:
        why = replayed.not_measured.get("samples_per_s") if replayed else why_no_isolation
        return None, f"cached batches were not replayed: {why}"
    rate, rounds = replayed.samples_per_s, len(replayed.trials)
    return Ceiling(
        samples_per_s=rate.est,
        headspace=_headspace(subject, rate.est),
        basis=f"cached batches replayed, {rounds} round{'s' if rounds > 1 else ''}",
        samples_per_s_interval=rate if rate.lo is not None else None,
        not_measured={} if rate.lo is not None else {_INTERVAL: "one round has no interval"},
    ), ""


def _loop_ceiling(subject: Subject) -> tuple[Ceiling | None, str]:
    wait = subject.data_wait_share.est
    if wait >= NOTHING_BUT_WAITING:
        return None, "the loop did nothing but wait for data"
    rate = subject.samples_per_s.est / (1 - wait)
    basis, reasons = "the loop's own time between batches", {_INTERVAL: "one process has no interval"}
    return Ceiling(samples_per_s=rate, headspace=wait, basis=basis, not_measured=reasons), ""


def _headspace(subject: Subject, ceiling: float) -> float:
    return min(1.0, max(0.0, 1 - subject.samples_per_s.est / ceiling))
