"""The dataset's own code is the costliest stage.

Triggers when CPUs are saturated and `__getitem__` or the transform is the largest stage.

What it does: computes results once and keeps them, or moves the work to a compiled library.

How to confirm: measure again; the CPU time per sample falls.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="cheaper_sample",
    title="Speed up __getitem__: cache or use a compiled library",
    applies=lambda found: found.named(stages={"sample", "transform"}, limits={"cpu", "neighbors"}),
)
