"""Workers are busy and CPUs are idle: the smallest count within the noise of the best.

Fires where workers are the limit. What the sweep measured counts; else tried with as many
as the CPUs that are left feed.
"""

from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.workers import WorkerRemedy, workers_that_fit

REMEDY = MeasuredFirst(
    WorkerRemedy(
        id="more_workers",
        title="Raise num_workers to {}",
        fits=lambda now, best: best > now,
        about=lambda now: now > 0,
    ),
    CauseRemedy(
        id="more_workers",
        title="Raise num_workers to {num_workers}",
        effort=0,
        applies=lambda found: found.facts.workers > 0 and found.named(limits={"workers"}),
        change=lambda found: {"num_workers": workers_that_fit(found.facts)},
        costs=("memory for each worker process",),
    ),
)
