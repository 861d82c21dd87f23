"""Workers, or threads of one process, wait for each other at a lock.

Triggers when a lock in the dataset is the limit, unless a loader's workers are threads (see `process_loader`)
or wait for another process (see `feeding_process`).

What it does: gives each worker its own handle, and computes outside the lock.

How to confirm: profile again; workers are blocked less often.
"""

from loaderbench.diagnosis.requirements import waits_for_a_process
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.process_loader import has_thread_pool

REMEDY = CauseRemedy(
    id="release_lock",
    title="Open one handle per worker; compute outside the lock",
    applies=lambda found: (
        found.named(limits={"lock"})
        and found.verdict.stage not in ("main_process", "transport")
        and not waits_for_a_process(found.facts)
        and not found.facts.in_threads
        and not has_thread_pool(found)
    ),
    code="""import torch.utils.data

def worker_init_fn(_):
    info = torch.utils.data.get_worker_info()
    info.dataset.file = open(info.dataset.path, "rb")  # its own handle needs no lock
""",
)
