"""Threads of one process run Python code one at a time, because they share the GIL.

Triggers when the loader uses threads, or a dataset without workers does, and a lock such as the GIL limits them.

What it does: uses one worker process of torch's `DataLoader` per thread, each with its own GIL.

How to confirm: measure again with `-P loader=torch -P num_workers=auto`; throughput and CPU use rise.
"""

from loaderbench.diagnosis.limits import no_worker_would_help
from loaderbench.diagnosis.requirements import threads_take_turns
from loaderbench.loaders import AXIS, DEFAULT_BACKEND
from loaderbench.records import Config
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis


def has_thread_pool(found: Diagnosis) -> bool:
    """Whether a main process without workers loads in Python threads, which share its GIL, and workers could help."""
    facts = found.facts
    return facts.workers == 0 and threads_take_turns(facts) and not no_worker_would_help(facts)


def _change(found: Diagnosis) -> Config:
    if found.facts.in_threads:
        return {AXIS: DEFAULT_BACKEND, "num_workers": found.facts.workers}
    return {"num_workers": max(1, int(found.facts.cpus / found.facts.ranks))}


REMEDY = CauseRemedy(
    id="process_loader",
    title="Load in {num_workers} worker processes instead of threads",
    values={"num_workers": "N"},
    applies=lambda found: (
        (found.facts.in_threads or has_thread_pool(found))
        and found.named(limits={"lock"})
        and found.verdict.stage not in ("main_process", "transport")
    ),
    change=_change,
    effort=1,
    costs=("RAM for each worker process", "Batches are copied between processes"),
    ends_contention=True,
)
