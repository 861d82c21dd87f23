"""Samples are made between two steps, in the process that trains, while the accelerator has nothing to do.

Fires where batches are made in the process that trains and CPUs are left. Tried with as many workers as these feed.
"""

from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.workers import WorkerRemedy, workers_that_fit

REMEDY = MeasuredFirst(
    WorkerRemedy(
        id="main_process_loading",
        title="Load in worker processes: set num_workers to {}",
        fits=lambda now, best: now == 0 < best,
        about=lambda now: now == 0,
    ),
    CauseRemedy(
        id="main_process_loading",
        title="Load in worker processes: set num_workers to {num_workers}",
        effort=0,
        applies=lambda found: (
            found.facts.workers == 0 and found.facts.is_loader and found.named(limits={"workers", "storage_latency"})
        ),
        change=lambda found: {"num_workers": workers_that_fit(found.facts)},
        costs=("memory for each worker process",),
    ),
)
