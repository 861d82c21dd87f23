"""A copy from pageable memory cannot overlap with the step; one from pinned memory can.

Fires where there is a device and the sweep measured both.
"""

from loaderbench.remedies.pinning import PinningRemedy

REMEDY = PinningRemedy(
    id="pin_memory",
    title="Set pin_memory=True",
    pinned=True,
    caveat="it helps only with .to(device, non_blocking=True); never call .pin_memory() in the loop itself",
)
