"""Workers blocked in reads use no CPU, so more of them than CPUs can run.

Triggers when storage latency is the limit.

What it does: starts four times as many workers, to wait for more reads at once.

How to confirm: throughput rises while CPU use stays low.
"""

from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.workers import workers_that_hide

REMEDY = CauseRemedy(
    id="workers_beyond_cores",
    title="Set num_workers={num_workers} (more than CPUs)",
    effort=0,
    applies=lambda found: (
        found.facts.workers > 0 and found.named(limits={"storage_latency"}) and found.verdict.stage != "stragglers"
    ),
    change=lambda found: {"num_workers": workers_that_hide(found.facts)},
    costs=("RAM for each worker process",),
)
