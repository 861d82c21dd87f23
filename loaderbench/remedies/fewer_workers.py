"""More threads than CPUs take turns on them, and each worker costs memory: fewer give as much or more.

In a sweep as fast within the noise is enough, since fewer are cheaper.
"""

from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.workers import WorkerRemedy

REMEDY = MeasuredFirst(
    WorkerRemedy(
        id="fewer_workers",
        title="Lower num_workers to {}",
        fits=lambda now, best: best < now,
        about=lambda now: now > 0,
        cheaper=True,
    ),
    CauseRemedy(
        id="fewer_workers",
        title="Lower num_workers to {num_workers}",
        effort=0,
        applies=lambda found: found.named(limits={"oversubscription"}) and found.facts.workers > found.facts.cpus,
        change=lambda found: {"num_workers": max(1, int(found.facts.cpus))},
    ),
)
