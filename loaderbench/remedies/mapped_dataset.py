"""The dataset is larger than memory, or every worker holds a copy of it, so the kernel moves parts of it to swap.

Triggers when the loader waits for memory that is swapped out.

What it does: keeps the samples in one file that is mapped into memory. All workers share its pages, and the kernel
drops pages without writing them to swap.

How to confirm: measure again; less memory is swapped out, and memory (PSS) falls.
"""

from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis


def _title(found: Diagnosis) -> str:
    return "Read samples from one mapped file" + (" that all workers share" if found.facts.workers > 1 else "")


REMEDY = CauseRemedy(
    id="mapped_dataset",
    title="Read samples from one mapped file that all workers share",
    title_for=_title,
    effort=3,
    applies=lambda found: found.is_swapped and found.option("image_cache") is None,
    code="""import numpy as np

# once: np.save("samples.npy", samples), or np.lib.format.open_memmap to write a file larger than memory
samples = np.load("samples.npy", mmap_mode="r")  # open it in __init__; do not copy it into a list
""",
    caveat="A dataset larger than memory is then read from the disk. Random access needs a fast one",
)
