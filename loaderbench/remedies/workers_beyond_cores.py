"""Workers blocked in reads use no CPU, so there can be more workers than CPUs.

Triggers when storage latency is the limit and the workers are never idle.

What it does: starts four times as many workers, so more reads are in flight at once.

How to confirm: throughput rises while CPU use stays low.
"""

from loaderbench.diagnosis.limits import have_work
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis
from loaderbench.remedies.wording import argument
from loaderbench.remedies.workers import RAM_OF_PROCESSES, costs_of_workers, loading_in, workers_that_hide


def _title(found: Diagnosis) -> str:
    count = workers_that_hide(found.facts)
    arguments = ", ".join(argument(*one) for one in loading_in(found, count).items())
    return f"Set {arguments}" + (" (more than CPUs)" if count * found.facts.ranks > found.facts.cpus else "")


REMEDY = CauseRemedy(
    id="workers_beyond_cores",
    title="Set {arguments} (more than CPUs)",
    title_for=_title,
    values={"arguments": "num_workers=N"},
    effort=0,
    applies=lambda found: (
        0 < found.facts.workers < workers_that_hide(found.facts)
        and have_work(found.facts)
        and found.workers_fit
        and found.named(limits={"storage_latency"})
        and found.verdict.stage != "stragglers"
    ),
    change=lambda found: loading_in(found, workers_that_hide(found.facts)),
    costs=RAM_OF_PROCESSES,
    costs_for=lambda found: costs_of_workers(found, workers_that_hide(found.facts)),
)
