"""Samples are decoded between two steps, in the process that trains, while the accelerator has nothing to do."""

from loaderbench.remedies.workers import WorkerRemedy

REMEDY = WorkerRemedy(
    id="main_process_loading",
    title="Load in worker processes: set num_workers to {}",
    fits=lambda now, best: now == 0 < best,
    about=lambda now: now == 0,
)
