"""Code between epochs takes longer than the wait for data.

Triggers when one line between the epochs of a profiled script takes at least a tenth of all time, and more than the
data wait. It can be a validation, a metric or a new list of files.

What it does: runs that code less often, speeds it up, or moves it to another process.

How to confirm: profile again; the time between epochs falls.
"""

from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.own_line import LEAST_OF_LOOP, between_line_share, speed_up_place

REMEDY = CauseRemedy(
    id="between_epochs",
    title="Speed up the code between epochs",
    title_for=lambda found: speed_up_place(found.facts.between_line, between_line_share(found.facts), "of time"),
    applies=lambda found: (
        found.verdict.bound in ("input", "compute")
        and between_line_share(found.facts) >= max(LEAST_OF_LOOP, found.facts.wait_share)
    ),
)
