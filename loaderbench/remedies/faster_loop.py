"""Code of the training loop takes longer than the wait for data.

Triggers when a line of a profiled script takes at least a tenth of step time, and more than the data wait. The line is
outside of the model, its backward pass and the optimizer: a logger, a checkpoint, a metric or transforms in the loop.

What it does: calls that code less often, speeds it up, or moves it to workers or another process.

How to confirm: profile again; throughput rises.
"""

from loaderbench.remedies.own_line import costly_line

REMEDY = costly_line(
    "faster_loop",
    "Speed up the code of the training loop",
    line_of=lambda facts: facts.step_line,
    part_of=lambda facts: facts.rest_share,
    of_what="of step time",
)
