"""A random generator inside the dataset is copied into every worker: all of them draw the same numbers.

Fires where the dataset or its transform holds one, whatever the cause of a wait. It is about what is learned, not about
speed.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="duplicate_augmentation",
    title="Seed the dataset's own random generator in each worker",
    applies=lambda found: "random_state" in found.traits and found.facts.workers > 1,
    untried="it changes what is drawn, not how fast",
    code="""import numpy as np
from torch.utils.data import get_worker_info

def worker_init_fn(_):
    worker = get_worker_info()
    worker.dataset.rng = np.random.default_rng(worker.seed)  # by the name it has in your dataset
""",
    caveat="samples are augmented otherwise than before",
)
