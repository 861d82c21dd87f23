"""Samples are loaded in the training process, so the GPU idles during every batch.

Triggers when `num_workers=0` and CPUs are idle. Batches that cost less to load than to
send from a worker stay in the main process.

What it does: loads in worker processes, as many as the idle CPUs can feed.

How to confirm: throughput rises and data wait falls with workers.
"""

from loaderbench.diagnosis.cpu_use import workers_that_fit
from loaderbench.diagnosis.limits import no_worker_would_help
from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.workers import WorkerRemedy

REMEDY = MeasuredFirst(
    WorkerRemedy(
        id="main_process_loading",
        title="Set {axis}={count}",
        general="Use worker processes",
        fits=lambda now, best: now == 0 < best,
        about=lambda now: now == 0,
    ),
    CauseRemedy(
        id="main_process_loading",
        title="Set num_workers={num_workers}",
        effort=0,
        applies=lambda found: (
            found.facts.workers == 0
            and found.facts.is_loader
            and found.named(limits={"workers", "storage_latency"})
            and not no_worker_would_help(found.facts)
        ),
        change=lambda found: {"num_workers": workers_that_fit(found.facts)},
        costs=("RAM for each worker process",),
    ),
)
