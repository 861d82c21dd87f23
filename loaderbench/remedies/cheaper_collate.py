"""Joining samples to a batch is the dearest stage.

Fires where CPUs are full and collating is the dearest stage. The change is in the user's code.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="cheaper_collate",
    title="Make collate_fn cheaper: stack arrays of one shape, and pad or tokenise in the dataset",
    applies=lambda found: found.named(stages={"collate"}, limits={"cpu"}),
)
