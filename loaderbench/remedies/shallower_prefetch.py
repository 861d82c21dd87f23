"""Batches that wait for their turn take memory, while other memory is swapped out.

Triggers when the loader waits for memory that is swapped out, and each worker prefetches more than one batch.

What it does: lets each worker prepare one batch ahead. A smaller batch_size saves memory too, but changes training.

How to confirm: measure again; less memory is swapped out.
"""

from loaderbench.loaders.torch_loader import PREFETCH
from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="shallower_prefetch",
    title="Set prefetch_factor={prefetch_factor}",
    effort=0,
    applies=lambda found: (
        found.is_swapped and found.facts.workers > 0 and int(found.config.get("prefetch_factor") or PREFETCH) > 1
    ),
    change=lambda _: {"prefetch_factor": 1},
    caveat="Saves little if batches are small",
)
