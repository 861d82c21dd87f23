"""Code of the training loop takes longer than the wait for data.

Triggers when a line of a profiled script takes at least a tenth of step time, and more than the data wait. The line is
outside of the model, its backward pass and the optimizer: a logger, a checkpoint, a metric or transforms in the loop.

What it does: calls that code less often, speeds it up, or moves it to workers or another process.

How to confirm: profile again; throughput rises.
"""

from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.own_line import LEAST_OF_LOOP, speed_up_place, step_line_share

REMEDY = CauseRemedy(
    id="faster_loop",
    title="Speed up the code of the training loop",
    title_for=lambda found: speed_up_place(found.facts.step_line, step_line_share(found.facts), "of step time"),
    applies=lambda found: (
        found.verdict.bound in ("input", "compute")
        and step_line_share(found.facts) >= max(LEAST_OF_LOOP, found.facts.wait_share)
    ),
)
