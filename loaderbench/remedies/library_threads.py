"""Libraries start threads of their own in every worker, and these take turns on the CPUs."""

from loaderbench.remedies.by_cause import CauseRemedy

MORE_THAN_ONE = 1.3  # threads that want to run, for each process that loads

REMEDY = CauseRemedy(
    id="library_threads",
    title="Let every worker use one thread",
    applies=lambda found: found.named(limits="oversubscription") and found.facts.threads_per_loading > MORE_THAN_ONE,
    code="""import cv2, torch

def worker_init_fn(_):
    torch.set_num_threads(1)
    cv2.setNumThreads(0)

# for NumPy's libraries, before the start: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
""",
)
