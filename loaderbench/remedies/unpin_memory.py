"""The thread that pins batches holds the GIL while it copies, which costs more than it gives when tensors are many.

Fires where the baseline pins, and the sweep measured both.
"""

from loaderbench.remedies.pinning import PinningRemedy

REMEDY = PinningRemedy(
    id="unpin_memory",
    title="Set pin_memory=False",
    pinned=False,
    caveat="copies to the device then block the host until they are done",
)
