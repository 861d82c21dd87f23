"""Joining samples to a batch is the dearest stage."""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="cheaper_collate",
    title="Make collate_fn cheaper: stack arrays of one shape, and pad or tokenise in the dataset",
    applies=lambda found: found.named(stages="collate", limits="cpu"),
)
