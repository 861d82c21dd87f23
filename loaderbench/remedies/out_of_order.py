"""Finished batches wait for a slow one ahead of them."""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="out_of_order",
    title="Hand out batches as they are ready: in_order=False",
    applies=lambda found: found.named(limits="order"),
    change=lambda _: {"in_order": False},
    caveat="the order of batches is no longer the sampler's; it needs torch 2.6",
)
