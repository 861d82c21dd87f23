"""Every worker gets a copy of the dataset's random generator, so all draw the same numbers.

Triggers when the dataset or its transform holds a generator and loads in several workers. It affects learning, not
speed.

What it does: seeds the generator differently in each worker.

How to confirm: print the first random draw of each worker; they differ.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="duplicate_augmentation",
    title="Seed the dataset's random generator in each worker",
    applies=lambda found: "random_state" in found.traits and found.facts.workers > 1,
    untried="Not measured: it changes the random draws, not the speed",
    code="""import numpy as np
from torch.utils.data import get_worker_info

def worker_init_fn(_):
    worker = get_worker_info()
    worker.dataset.rng = np.random.default_rng(worker.seed)  # use your attribute's name
""",
    caveat="Samples are augmented differently than before",
)
