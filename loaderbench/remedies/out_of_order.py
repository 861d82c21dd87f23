"""Finished batches wait for a slow one ahead of them.

Fires where that is most of the wait. Tried with batches handed out as they are ready.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="out_of_order",
    title="Hand out batches as they are ready: in_order=False",
    effort=2,
    applies=lambda found: found.named(limits={"order"}) and found.config.get("in_order") is not False,
    change=lambda _: {"in_order": False},
    caveat="the order of batches is no longer the sampler's, which reproducible training needs; it takes torch 2.6",
)
