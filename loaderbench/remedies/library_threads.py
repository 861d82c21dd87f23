"""Libraries start their own threads in every worker, and these threads compete for the CPUs.

Triggers when more threads than CPUs want to run, with more than 1.3 per loading process.

What it does: limits BLAS and OpenMP libraries and torch to one thread per worker.

How to confirm: throughput rises, and workers wait for a CPU less often.
"""

from loaderbench.diagnosis.facts import Facts
from loaderbench.remedies.by_cause import CauseRemedy

MORE_THAN_ONE = 1.3  # threads that want to run, for each process that loads

NOTABLE = 0.1  # of a worker's time; without libraries, only the thread that sends batches runs next to the main one


def _are_in_workers(facts: Facts) -> bool:
    """Whether the threads that compete are those of workers, and not of a training step on the CPU."""
    others = facts.loads.other_threads_cpu_share if facts.loads else None
    return not facts.workers or others is None or others >= NOTABLE


REMEDY = CauseRemedy(
    id="library_threads",
    title="Limit each worker to one library thread",
    applies=lambda found: (
        found.named(limits={"oversubscription"})
        and found.facts.threads_per_loading > MORE_THAN_ONE
        and _are_in_workers(found.facts)
    ),
    change=lambda _: {"worker_threads": 1},
    caveat="OMP_NUM_THREADS=1 in the environment does the same for most libraries",
)
