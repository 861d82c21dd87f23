"""The dataset's own code is the dearest stage, and the CPUs are full.

Fires where that is so. The change is in the user's code.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="cheaper_sample",
    title="Make the dataset's own work cheaper: compute once and keep the result, or use a compiled library",
    applies=lambda found: found.named(stages={"sample", "transform"}, limits={"cpu"}),
)
