"""Workers are busy while CPUs are idle.

Triggers when workers are the limit. In a sweep it takes the fewest workers that tie with the best.

What it does: starts more workers, as many as the idle CPUs can feed.

How to confirm: throughput and CPU use rise with more workers.
"""

from loaderbench.diagnosis.cpu_use import workers_that_fit
from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.workers import RAM_OF_PROCESSES, WorkerRemedy, costs_of_workers, loading_in

REMEDY = MeasuredFirst(
    WorkerRemedy(
        id="more_workers",
        title="Set {axis}={count}",
        general="Raise {axis}",
        fits=lambda now, best: best > now,
        about=lambda now: now > 0,
    ),
    CauseRemedy(
        id="more_workers",
        title="Set {arguments}",
        values={"arguments": "num_workers=N"},
        effort=0,
        applies=lambda found: found.facts.workers > 0 and found.workers_fit and found.named(limits={"workers"}),
        change=lambda found: loading_in(found, workers_that_fit(found.facts)),
        costs=RAM_OF_PROCESSES,
        costs_for=lambda found: costs_of_workers(found, workers_that_fit(found.facts)),
    ),
)
