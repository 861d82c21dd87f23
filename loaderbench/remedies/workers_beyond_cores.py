"""Workers that stand blocked in reads use no CPU: there may be more of them than CPUs.

Fires where a storage's answers are the limit. Tried with four times as many.
"""

from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.workers import workers_that_hide

REMEDY = CauseRemedy(
    id="workers_beyond_cores",
    title="Raise num_workers to {num_workers}, beyond the CPUs: they wait, and do not compute",
    effort=0,
    applies=lambda found: (
        found.facts.workers > 0 and found.named(limits={"storage_latency"}) and found.verdict.stage != "stragglers"
    ),
    change=lambda found: {"num_workers": workers_that_hide(found.facts)},
    costs=("memory for each worker process",),
)
