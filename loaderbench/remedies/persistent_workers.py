"""Every epoch starts its workers again.

Triggers when epoch starts cost more than all later waits, and workers do not persist, or each epoch has a new loader.
In a profile it also triggers when epoch starts take a tenth of the time, next to any other bottleneck.

What it does: keeps the worker processes alive between epochs.

How to confirm: profile several epochs; only the first one starts slowly.
"""

from loaderbench.diagnosis.limits import sampler_starts_slowly, startup_without_making
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis

LARGE_SHARE = 0.1
"""Share of total time from which epoch starts are worth a fix of their own, next to that of the bottleneck."""

_TITLE = "Set persistent_workers=True"
_COSTS = ("Startup", "Epoch boundary")


def _title(found: Diagnosis) -> str:
    return f"Create the DataLoader before the first epoch. {_TITLE}" if found.has_seen("new_loader") else _TITLE


def _starts_cost(found: Diagnosis) -> bool:
    """Whether epoch starts are the bottleneck, or cost much next to another one."""
    if found.named(limits={"startup"}):
        return True
    facts = found.facts
    return found.profile and not sampler_starts_slowly(facts) and startup_without_making(facts) >= LARGE_SHARE


def _evidence(found: Diagnosis) -> tuple[str, ...]:
    """What epoch starts cost. If they are the bottleneck, the evidence for that says it."""
    if found.named(limits={"startup"}):
        return found.verdict.evidence[:2]
    return tuple(str(line) for line in found.verdict.evidence_parts if line.label in _COSTS)


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
    caveat="Reuse one DataLoader for all epochs: a new one starts new workers",
)
