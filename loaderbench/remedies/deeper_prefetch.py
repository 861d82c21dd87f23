"""Finished batches run out in bursts, though the mean rate would suffice: keep more of them ready.

Fires where batches wait for a slow one ahead of them, with workers that prefetch less than four each.
"""

from loaderbench.loaders.torch_loader import PREFETCH
from loaderbench.remedies.by_cause import CauseRemedy

DEEPER = 4

REMEDY = CauseRemedy(
    id="deeper_prefetch",
    title="Keep more batches ready: prefetch_factor={prefetch_factor}",
    effort=0,
    applies=lambda found: (
        found.named(limits={"order"})
        and found.facts.workers > 0
        and int(found.config.get("prefetch_factor") or PREFETCH) < DEEPER
    ),
    change=lambda _: {"prefetch_factor": DEEPER},
    costs=("shared memory: (num_workers x prefetch_factor + 1) batches",),
)
