"""The pinning thread holds the GIL while it copies, which can cost more than pinning gains.

Triggers when the baseline pins memory and the sweep measured both values. It also triggers when the pinning thread is
saturated and finished batches wait for it.

What it does: sets `pin_memory=False`.

Costs: copies to the GPU no longer overlap with the training step.

How to confirm: throughput rises without pinning.
"""

from loaderbench.diagnosis.thresholds import ONE_THREAD
from loaderbench.remedies.pinning import pinning_remedy

REMEDY = pinning_remedy(
    "unpin_memory",
    pinned=False,
    applies=lambda found: (
        found.named(stages={"transport"}, limits={"lock"}) and found.facts.pinning_share >= ONE_THREAD
    ),
    caveat="Copies to the GPU then block the host",
)
