"""Ready batches wait behind a slow one.

Triggers when head-of-line blocking is the largest part of the data wait.

What it does: delivers batches as they become ready.

How to confirm: data wait falls with `in_order=False`.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="out_of_order",
    title="Set in_order=False",
    effort=2,
    applies=lambda found: found.named(limits={"order"}) and found.config.get("in_order") is not False,
    change=lambda _: {"in_order": False},
    caveat="Batch order differs from the sampler's, so runs are not reproducible. Needs torch 2.6",
)
