"""Every epoch starts its workers again.

Triggers when epoch starts cost more than all later waits, and workers do not persist, or each epoch has a new loader.
In a profile it also triggers when epoch starts take a tenth of the time, next to any other bottleneck.

What it does: keeps the worker processes alive between epochs.

How to confirm: profile several epochs; only the first one starts slowly.
"""

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import startup_without_making
from loaderbench.diagnosis.wording import in_percent
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis

LARGE_SHARE = 0.1
"""Share of total time from which epoch starts are worth a fix of their own, next to that of the bottleneck."""

_TITLE = "Set persistent_workers=True"
_COSTS = ("Startup", "Epoch boundary")


def _title(found: Diagnosis) -> str:
    return f"Create the DataLoader before the first epoch. {_TITLE}" if found.has_seen("new_loader") else _TITLE


def _starts_cost(found: Diagnosis) -> bool:
    """Whether epoch starts are the bottleneck, or cost much next to another one.

    From outside, it is unknown whether workers persist. A stream begins again in each epoch, also in the same workers.
    """
    if found.named(limits={"startup"}):
        return True
    is_known = found.profile and not found.facts.from_outside and not found.has_seen("stream")
    return is_known and _saved_share(found.facts) >= LARGE_SHARE


def _saved_share(facts: Facts) -> float:
    """The share of total time that epoch starts take, without making the first batch and without the sampler."""
    sampler = facts.startup_share * facts.sampler_start_s / facts.startup_s if facts.startup_s else 0.0
    return startup_without_making(facts) - sampler


def _evidence(found: Diagnosis) -> tuple[str, ...]:
    """What epoch starts cost. If they are the bottleneck, the evidence for that says it."""
    if found.named(limits={"startup"}):
        return found.verdict.evidence[:2]
    of_starts = tuple(str(line) for line in found.verdict.evidence_parts if line.label in _COSTS)
    return of_starts or (f"Epoch starts: {in_percent(found.facts.startup_share)} of total time",)


REMEDY = CauseRemedy(
    id="persistent_workers",
    title=_TITLE,
    title_for=_title,
    effort=0,
    applies=lambda found: (
        _starts_cost(found) and found.facts.workers > 0 and (not found.workers_persist or found.has_seen("new_loader"))
    ),
    change=lambda found: {} if found.workers_persist else {"persistent_workers": True},
    costs=("Worker memory stays allocated between epochs",),
    evidence_for=_evidence,
    code="""loader = DataLoader(dataset, num_workers=..., persistent_workers=True)  # once for all epochs
for epoch in range(epochs):
    for batch in loader:
        ...
""",
    caveat="Reuse one DataLoader for all epochs. Its workers do not see later changes of the dataset",
)
