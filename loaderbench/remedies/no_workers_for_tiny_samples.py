"""A sample costs less than its way from a worker: without workers it comes faster.

Fires where batches are longer on their way than in the making. Tried without workers.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="no_workers_for_tiny_samples",
    title="Make these batches in the main process: num_workers=0",
    effort=0,
    applies=lambda found: found.named(stages={"transport"}) and found.facts.tiny_batches,
    change=lambda _: {"num_workers": 0},
)
