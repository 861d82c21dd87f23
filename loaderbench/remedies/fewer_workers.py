"""More threads than CPUs compete for them, and each worker costs memory.

Triggers when workers outnumber the CPUs and wait for them. In a sweep it also triggers when fewer workers tie with the
baseline, because fewer cost less.

What it does: runs fewer workers.

How to confirm: throughput holds or rises, and workers wait for a CPU less often.
"""

from loaderbench.diagnosis.facts import Facts
from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.workers import WorkerRemedy


def _are_more_than_cpus(facts: Facts) -> bool:
    """The workers of all ranks on this machine."""
    return facts.workers * facts.ranks > facts.cpus


REMEDY = MeasuredFirst(
    WorkerRemedy(
        id="fewer_workers",
        title="Set num_workers={}",
        general="Lower num_workers",
        fits=lambda now, best: best < now,
        about=lambda now: now > 0,
        cheaper=True,
    ),
    CauseRemedy(
        id="fewer_workers",
        title="Set num_workers={num_workers}",
        effort=0,
        applies=lambda found: found.named(limits={"oversubscription"}) and _are_more_than_cpus(found.facts),
        change=lambda found: {"num_workers": max(1, int(found.facts.cpus / found.facts.ranks))},
    ),
)
