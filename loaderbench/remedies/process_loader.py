"""Threads of one process run Python code one at a time, because they share the GIL.

Triggers when the loader uses threads, and a lock such as the GIL limits them.

What it does: uses one worker process of torch's `DataLoader` per thread, each with its own GIL.

How to confirm: measure again with `-P loader=torch -P num_workers=auto`; throughput and CPU use rise.
"""

from loaderbench.loaders import AXIS, DEFAULT_BACKEND
from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="process_loader",
    title="Load in {num_workers} worker processes instead of threads",
    values={"num_workers": "N"},
    applies=lambda found: (
        found.facts.in_threads
        and found.named(limits={"lock"})
        and found.verdict.stage not in ("main_process", "transport")
    ),
    change=lambda found: {AXIS: DEFAULT_BACKEND, "num_workers": found.facts.workers},
    effort=1,
    costs=("RAM for each worker process", "Batches are copied between processes"),
    ends_contention=True,
)
