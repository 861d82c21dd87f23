"""The cause of a wait in one clause: what limits the loader, then the stage it limits."""

from __future__ import annotations

from collections.abc import Callable

from loaderbench.diagnosis.cause import Cause
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import busiest, share_of_cpu
from loaderbench.diagnosis.wording import in_percent, stage_name
from loaderbench.records import Limit


def in_words(cause: Cause, facts: Facts) -> str:
    """`CPUs saturated; decode is the largest stage (50% of CPU time)`; empty for a cause whose limit is not known."""
    return _CLAUSES[cause.limit](cause, facts) if cause.limit in _CLAUSES else ""


def _cpus(cause: Cause, facts: Facts) -> str:
    saturated = (facts.spare_cpus or 0.0) < 0.5 * facts.cpus
    return f"{'CPUs saturated' if saturated else 'batches too small for workers'}{_where(cause, facts)}"


def _workers(cause: Cause, facts: Facts) -> str:
    who = {0: "one process loads everything", 1: "the only worker is busy", 2: "both workers are busy"}
    idle = "" if facts.spare_cpus is None else f", {facts.spare_cpus:.1f} of {facts.cpus:g} CPUs idle"
    return f"{who.get(facts.workers, f'all {facts.workers} workers are busy')}{idle}{_where(cause, facts)}"


def _threads(cause: Cause, facts: Facts) -> str:
    return f"{facts.runnable_threads:.0f} threads compete for {_cpu_count(facts)}{_where(cause, facts)}"


def _quota(cause: Cause, facts: Facts) -> str:
    what = "CPU quota" if cause.why.label == "CPU quota" else "CPU affinity"
    return f"{what} limits the loader{_where(cause, facts)}"


def _storage(of: str) -> Callable[[Cause, Facts], str]:
    def say(cause: Cause, facts: Facts) -> str:
        who = "workers wait" if facts.workers else "the main process waits"
        return f"storage {of}; {who} in {stage_name(cause.work)}"

    return say


def _lock(cause: Cause, _facts: Facts) -> str:
    what = "the GIL" if cause.why.label == "GIL" else "a lock"
    if cause.stage == "main_process":
        return f"the main process works in one thread{' (the GIL)' if what == 'the GIL' else ''}"
    return f"{what} serializes {stage_name(cause.work)}"


def _order(_cause: Cause, _facts: Facts) -> str:
    return "head-of-line blocking by slow samples"


def _startup(_cause: Cause, _facts: Facts) -> str:
    return "worker startup delays the first batch of every epoch"


def _memory(cause: Cause, _facts: Facts) -> str:
    return f"page-fault overhead in {stage_name(cause.work)}"


_CLAUSES: dict[Limit | None, Callable[[Cause, Facts], str]] = {
    "cpu": _cpus,
    "workers": _workers,
    "oversubscription": _threads,
    "quota": _quota,
    "storage_latency": _storage("latency"),
    "storage_bandwidth": _storage("bandwidth"),
    "lock": _lock,
    "order": _order,
    "startup": _startup,
    "memory": _memory,
}


def _where(cause: Cause, facts: Facts) -> str:
    """The stage, and its share of a sample's CPU time; nothing where a sample has no known parts."""
    if cause.stage in ("main_process", "transport"):
        return f"; {stage_name(cause.stage)} is the bottleneck"
    if cause.stage == "stragglers":
        return "; a few slow samples dominate"
    if not facts.cpu_s:
        return ""
    share = f" ({in_percent(share_of_cpu(facts))} of CPU time)" if cause.work == busiest(facts) else ""
    return f"; {stage_name(cause.work)} is the largest stage{share}"


def _cpu_count(facts: Facts) -> str:
    return f"{facts.cpus:g} CPU{'' if facts.cpus == 1 else 's'}"
