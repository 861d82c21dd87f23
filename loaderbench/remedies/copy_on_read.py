"""Every object of a long Python list is written to when it is read, by its reference count: workers copy its pages.

Fires where the dataset holds such a list and loads in workers. Memory then grows over the first epoch, by as much as
the list for each worker.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="copy_on_read",
    title="Keep the dataset's index in arrays instead of lists of objects",
    applies=lambda found: "object_list" in found.traits and found.facts.workers > 0,
    untried="it saves memory over an epoch, which a trial does not walk",
    code="""import numpy as np

paths = np.array([path for path, _ in samples])  # one block of memory: nothing in it is counted
labels = np.array([label for _, label in samples])
""",
)
