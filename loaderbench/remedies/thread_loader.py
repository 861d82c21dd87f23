"""Workers send batches through shared memory; threads skip that copy.

Triggers when worker-to-main IPC is the bottleneck. Does not apply if loading a batch costs less than sending it, or if
other threads of the main process use most of a CPU. It needs a map-style dataset.

What it does: replaces the worker processes with the same number of threads in the training process. Code that holds the
GIL runs in one thread at a time, so a dataset that is mostly Python gets slower.

How to confirm: measure again with `-P loader=torch,threads -P threads=auto`; throughput rises, and memory (PSS) falls.
"""

from loaderbench.loaders import AXIS, DEFAULT_BACKEND
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis


def _title(found: Diagnosis) -> str:
    workers = found.facts.workers
    return f"Load in {workers} threads instead of processes" if workers > 1 else "Load in 1 thread instead of a process"


REMEDY = CauseRemedy(
    id="thread_loader",
    title="Load in {threads} threads instead of processes",
    title_for=_title,
    values={"threads": "N"},
    applies=lambda found: (
        found.named(stages={"transport"})
        and not found.facts.tiny_batches
        and found.facts.workers > 0
        and not found.facts.main_has_busy_threads
        and found.config.get(AXIS) in (None, DEFAULT_BACKEND)
        and not {"stream", "loader", "iterable"} & found.traits.keys()
    ),
    change=lambda found: {AXIS: "threads", "threads": found.facts.workers},
    effort=1,
    caveat="The dataset must be thread-safe: threads cannot share an open file and its position",
)
