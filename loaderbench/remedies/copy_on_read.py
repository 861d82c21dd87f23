"""Workers copy the memory of a long Python list: reading an object writes its reference count.

Triggers when the dataset holds such a list and loads in workers. Memory then grows during the first epoch, by up to
the size of the list per worker.

What it does: stores the index in arrays, whose elements have no reference counts.

How to confirm: host memory (PSS) stays flat during the first epoch.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="copy_on_read",
    title="Store the dataset's index in arrays, not lists",
    applies=lambda found: "object_list" in found.traits and found.facts.workers > 0,
    untried="Not measured: it saves memory over a whole epoch, and trials are shorter",
    code="""import numpy as np

paths = np.array([path for path, _ in samples])  # one block of memory without reference counts
labels = np.array([label for _, label in samples])
""",
)
