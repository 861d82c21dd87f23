"""Parts of a headline: what limits the loader, then the stage it limits. Each rule of `cause.py` joins its own."""

from __future__ import annotations

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import busiest, cpus_are_full, share_of_cpu
from loaderbench.diagnosis.thresholds import SPARE_CPUS
from loaderbench.diagnosis.wording import in_percent, stage_name
from loaderbench.records import Limit

NEIGHBORS = "other programs use CPUs that the loader needs"
NOTABLY_IDLE = 0.2  # of the workers' time; with less they are simply busy


def limit_of_work(limit: Limit, facts: Facts) -> str:
    """What keeps the work itself from going faster: too few workers, no CPU, or nothing that workers would help."""
    if limit == "workers":
        return _workers(facts)
    if limit == "neighbors":
        return NEIGHBORS
    if cpus_are_full(facts):
        return "CPUs saturated"
    tiny = facts.tiny_batches and not facts.workers
    more = "more workers" if facts.workers else "workers"
    return "batches too small for workers" if tiny else f"limited by CPU time; {more} do not help"


def _workers(facts: Facts) -> str:
    """`too few workers: 2 busy, 1.4 CPUs free`."""
    spinning = " (now spinning)" if facts.library_cpus >= SPARE_CPUS else ""
    free = "" if facts.spare_cpus is None else f", {facts.spare_cpus:.1f} CPUs free{spinning}"
    if not facts.workers:
        return f"no workers{' (num_workers=0)' if facts.is_loader else ''}{free}"
    at_work = round(facts.workers * (1 - facts.ended_share))
    busy = f"{at_work} busy" if at_work == facts.workers else f"{at_work} of {facts.workers} busy"
    idle = min(facts.idle_share or 0.0, 1.0)
    of_the_time = f" {in_percent(1 - idle)} of the time" if idle >= NOTABLY_IDLE else ""
    return f"too few workers: {busy}{of_the_time}{free}"


def threads_compete(facts: Facts) -> str:
    """`6 threads compete for 2 CPUs`, with one decimal of a mean that is not whole."""
    threads = f"{facts.runnable_threads:.1f}".removesuffix(".0")
    return f"{threads} threads compete for {_cpus(facts)}"


def where(work: str, facts: Facts) -> str:
    """The stage, and its share of a sample's CPU time; nothing where a sample has no known parts."""
    if work in ("main_process", "transport"):
        return f"; {stage_name(work)} is the bottleneck"
    if work == "stragglers":
        return "; a few slow samples dominate"
    if not facts.cpu_s:
        return ""
    share = f" ({in_percent(share_of_cpu(facts))} of CPU time)" if work == busiest(facts) else ""
    return f"; {stage_name(work)} is the largest stage{share}"


def _cpus(facts: Facts) -> str:
    return f"{facts.cpus:g} CPU{'' if facts.cpus == 1 else 's'}"
