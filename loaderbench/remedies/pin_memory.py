"""A copy from pageable memory cannot overlap with the training step; one from pinned memory can.

Triggers when a GPU is present and the sweep measured both values.

What it does: sets `pin_memory=True`.

Costs: page-locked host memory.

How to confirm: throughput rises, and the host-to-device copy takes less of the step.
"""

from loaderbench.remedies.pinning import PinningRemedy

REMEDY = PinningRemedy(
    id="pin_memory",
    title="Set pin_memory=True",
    pinned=True,
    caveat="Needs .to(device, non_blocking=True); do not call .pin_memory() in the loop",
)
