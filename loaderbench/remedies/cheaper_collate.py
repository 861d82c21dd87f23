"""Joining samples into a batch is the costliest stage.

Triggers when CPUs are saturated and collate is the largest stage, or when one line of your own `collate_fn` takes most
of the loading time.

What it does: returns arrays of one shape from the dataset, which stack without a copy per sample.

How to confirm: measure again; the share of collate in the CPU time per sample falls.
"""

from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.own_line import OF_OWN_LINES, own_line, speed_up

TITLE = "Simplify collate_fn: stack arrays of one shape"

REMEDY = CauseRemedy(
    id="cheaper_collate",
    title=TITLE,
    title_for=lambda found: speed_up(found, TITLE),
    applies=lambda found: (
        found.named(stages={"collate"}, limits={"cpu", "neighbors"})
        or (found.named(stages={"collate"}, limits=OF_OWN_LINES) and own_line(found) is not None)
    ),
)
