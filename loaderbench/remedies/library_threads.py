"""Libraries start their own threads in every worker, and these threads compete for the CPUs.

Triggers when runnable threads outnumber the CPUs, with more than 1.3 threads per loading process. It also triggers
when CPUs are saturated and libraries use threads in the workers, because threads can spin while they wait.

What it does: limits BLAS and OpenMP libraries and torch to one thread per worker.

How to confirm: throughput rises, and workers wait for a CPU less often.
"""

from loaderbench.diagnosis.limits import have_library_threads
from loaderbench.diagnosis.thresholds import LOCKED
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis


def _fill_cpus(found: Diagnosis) -> bool:
    """Whether library threads of the workers use much of the CPUs."""
    return found.facts.workers > 0 and (found.facts.library_share or 0.0) >= LOCKED


REMEDY = CauseRemedy(
    id="library_threads",
    title="Limit each worker to one library thread",
    applies=lambda found: (
        (found.named(limits={"oversubscription"}) or (found.named(limits={"cpu"}) and _fill_cpus(found)))
        and have_library_threads(found.facts)
        and not found.facts.one_thread_is_no_faster
    ),
    change=lambda _: {"worker_threads": 1},
    caveat="OMP_NUM_THREADS=1 in the environment does the same for most libraries",
)
