"""Code between epochs takes longer than the wait for data.

Triggers when one line between the epochs of a profiled script takes at least a tenth of all time, and more than the
data wait. It can be a validation, a metric or a new list of files.

What it does: runs that code less often, speeds it up, or moves it to another process.

How to confirm: profile again; the time between epochs falls.
"""

from loaderbench.remedies.own_line import costly_line

REMEDY = costly_line(
    "between_epochs",
    "Speed up the code between epochs",
    line_of=lambda facts: facts.between_line,
    part_of=lambda facts: facts.between_share,
    of_what="of time",
)
