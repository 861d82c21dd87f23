"""Prefetched batches run out in bursts, although the mean throughput is high enough.

Triggers when ready batches wait behind a slow one, and workers prefetch fewer than four batches each.

What it does: keeps more batches ready, so one slow batch stalls training less.

How to confirm: data wait falls at a higher `prefetch_factor`.
"""

from loaderbench.loaders.torch_loader import PREFETCH
from loaderbench.remedies.by_cause import CauseRemedy

DEEPER = 4

REMEDY = CauseRemedy(
    id="deeper_prefetch",
    title="Set prefetch_factor={prefetch_factor}",
    effort=0,
    applies=lambda found: (
        found.named(limits={"order"})
        and found.facts.workers > 0
        and int(found.config.get("prefetch_factor") or PREFETCH) < DEEPER
    ),
    change=lambda _: {"prefetch_factor": DEEPER},
    costs=("Shared memory: num_workers * prefetch_factor + 1 batches",),
)
