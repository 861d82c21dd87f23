"""A copy from pageable memory cannot overlap with the training step; one from pinned memory can.

Triggers when a GPU is present and the sweep measured both values. It also triggers when the host-to-device copy limits
the training step and memory is not pinned.

What it does: sets `pin_memory=True`.

Costs: page-locked host memory.

How to confirm: throughput rises, and the host-to-device copy takes less of the step.
"""

from loaderbench.remedies.pinning import pinning_remedy

REMEDY = pinning_remedy(
    "pin_memory",
    pinned=True,
    applies=lambda found: found.verdict.bound == "transfer" and found.accelerator,
    caveat="Needs .to(device, non_blocking=True); do not call .pin_memory() in the loop",
)
