"""More threads than CPUs compete for them, and each worker costs memory.

Triggers when workers outnumber the CPUs and wait for them. With several ranks, it triggers when the workers of all
ranks outnumber saturated CPUs. In a sweep it also triggers when fewer workers tie with the baseline, because fewer cost
less.

What it does: runs fewer workers, one for each CPU of a rank. With more ranks than CPUs, each rank loads in its main
process.

How to confirm: throughput holds or rises, and workers wait for a CPU less often.
"""

from loaderbench.diagnosis.facts import Facts
from loaderbench.records import Limit
from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.findings import Diagnosis
from loaderbench.remedies.workers import WorkerRemedy, loading_in


def _compete(found: Diagnosis) -> bool:
    """Whether the workers of all ranks are more than the CPUs, and lack them."""
    facts = found.facts
    limits: tuple[Limit, ...] = ("oversubscription", "cpu") if facts.ranks > 1 else ("oversubscription",)
    return found.named(limits=limits) and facts.workers * facts.ranks > facts.cpus


def _share_of_rank(facts: Facts) -> int:
    """One worker for each CPU of a rank; none where ranks outnumber the CPUs, which they fill by themselves."""
    each = int(facts.cpus / facts.ranks)
    return each if facts.ranks > 1 else max(1, each)


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
        applies=_compete,
        change=lambda found: loading_in(found, _share_of_rank(found.facts)),
    ),
)
