"""A copy from pageable memory cannot overlap with the training step; one from pinned memory can.

Triggers when a GPU is present and the sweep measured both values. It also triggers when the host-to-device copy limits
the training step and memory is not pinned.

What it does: sets `pin_memory=True`.

Costs: page-locked host memory.

How to confirm: throughput rises, and the host-to-device copy takes less of the step.
"""

from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.pinning import PinningRemedy

_TITLE = "Set pin_memory=True"
_CAVEAT = "Needs .to(device, non_blocking=True); do not call .pin_memory() in the loop"

REMEDY = MeasuredFirst(
    PinningRemedy(id="pin_memory", title=_TITLE, pinned=True, caveat=_CAVEAT),
    CauseRemedy(
        id="pin_memory",
        title=_TITLE,
        applies=lambda found: (
            found.verdict.bound == "transfer" and found.accelerator and not found.config.get("pin_memory")
        ),
        change=lambda _: {"pin_memory": True},
        caveat=_CAVEAT,
    ),
)
