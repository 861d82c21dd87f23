"""More threads than CPUs compete for them, and each worker costs memory.

Triggers when workers outnumber the CPUs and wait for them, or when fewer were measured as faster. With several ranks,
it triggers when the workers of all ranks outnumber saturated CPUs. It also triggers when memory is swapped out and
there are several workers. In a sweep it also triggers when fewer workers tie with the baseline, because fewer cost
less.

What it does: lowers num_workers to one per available CPU of a rank, or by one. With more ranks than CPUs, each rank
loads in its main process. With memory that is swapped out, it halves num_workers.

How to confirm: throughput holds or rises. Workers wait for a CPU less often, or less memory is swapped out.
"""

from loaderbench.diagnosis.cpu_use import fewer_workers
from loaderbench.records import Limit
from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.findings import Diagnosis
from loaderbench.remedies.workers import WorkerRemedy, loading_in


def _workers_compete(found: Diagnosis) -> bool:
    """Whether workers compete for CPUs: all ranks have more workers than CPUs, or fewer workers were faster.

    False if fewer workers were measured as no faster.
    """
    facts = found.facts
    limits: tuple[Limit, ...] = ("oversubscription", "cpu") if facts.ranks > 1 else ("oversubscription",)
    if not found.named(limits=limits):
        return False
    crowded = facts.workers * facts.ranks > facts.cpus and not facts.fewer_are_no_faster
    return crowded or (facts.fewer_are_faster and facts.workers > 1)


def _takes_memory(found: Diagnosis) -> bool:
    """Whether memory is swapped out, and each worker process can hold a part of it."""
    facts = found.facts
    return found.is_swapped and facts.workers > 1 and not facts.in_threads and not facts.fewer_are_no_faster


def _count(found: Diagnosis) -> int:
    return found.facts.workers // 2 if found.is_swapped else fewer_workers(found.facts)


REMEDY = MeasuredFirst(
    WorkerRemedy(
        id="fewer_workers",
        title="Set {axis}={count}",
        general="Lower {axis}",
        fits=lambda now, best: best < now,
        about=lambda now: now > 0,
        cheaper=True,
    ),
    CauseRemedy(
        id="fewer_workers",
        title="Set {arguments}",
        values={"arguments": "num_workers=N"},
        effort=0,
        ends_contention=True,
        applies=lambda found: _workers_compete(found) or _takes_memory(found),
        change=lambda found: loading_in(found, _count(found)),
    ),
)
