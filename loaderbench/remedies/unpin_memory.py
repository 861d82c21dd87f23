"""The pinning thread holds the GIL while it copies, which can cost more than pinning gains.

Triggers when the baseline pins memory and the sweep measured both values.

What it does: sets `pin_memory=False`.

Costs: copies to the GPU no longer overlap with the training step.

How to confirm: throughput rises without pinning.
"""

from loaderbench.remedies.pinning import PinningRemedy

REMEDY = PinningRemedy(
    id="unpin_memory",
    title="Set pin_memory=False",
    pinned=False,
    caveat="Copies to the GPU then block the host",
)
