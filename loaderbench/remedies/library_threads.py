"""Libraries start threads of their own in every worker, and these take turns on the CPUs.

Fires where more threads than CPUs want to run, and more than one for each process that loads. Tried with one thread
for each library of numbers in each worker.
"""

from loaderbench.remedies.by_cause import CauseRemedy

MORE_THAN_ONE = 1.3  # threads that want to run, for each process that loads

REMEDY = CauseRemedy(
    id="library_threads",
    title="Let every worker use one thread",
    applies=lambda found: found.named(limits={"oversubscription"}) and found.facts.threads_per_loading > MORE_THAN_ONE,
    change=lambda _: {"worker_threads": 1},
    caveat="OMP_NUM_THREADS=1 in the environment does the same for most libraries",
)
