"""The dataset's own code is the costliest stage.

Triggers when `__getitem__` or the transform is the largest stage, and CPUs are saturated. One line of your own code
with most of the loading time is enough, too.

What it does: computes results once and keeps them, or moves the work to a compiled library.

How to confirm: measure again; the CPU time per sample falls.
"""

from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.own_line import OF_OWN_LINES, own_line, speed_up

TITLE = "Speed up __getitem__: cache or use a compiled library"

REMEDY = CauseRemedy(
    id="cheaper_sample",
    title=TITLE,
    title_for=lambda found: speed_up(found, TITLE),
    applies=lambda found: (
        found.named(stages={"sample", "transform"}, limits={"cpu", "neighbors"})
        or (found.named(stages={"sample", "transform"}, limits=OF_OWN_LINES) and own_line(found) is not None)
    ),
)
