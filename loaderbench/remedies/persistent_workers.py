"""Every epoch starts its workers again.

Triggers when epoch starts cost more than all later waits, and workers do not persist, or each epoch has a new loader.

What it does: keeps the worker processes alive between epochs.

How to confirm: profile several epochs; only the first one starts slowly.
"""

from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis

_TITLE = "Set persistent_workers=True"


def _title(found: Diagnosis) -> str:
    return f"Create the DataLoader before the first epoch. {_TITLE}" if found.has_seen("new_loader") else _TITLE


REMEDY = CauseRemedy(
    id="persistent_workers",
    title=_TITLE,
    title_for=_title,
    effort=0,
    applies=lambda found: (
        found.named(limits={"startup"})
        and found.facts.workers > 0
        and (not found.workers_persist or found.has_seen("new_loader"))
    ),
    change=lambda found: {} if found.workers_persist else {"persistent_workers": True},
    costs=("Worker memory stays allocated between epochs",),
    code="""loader = DataLoader(dataset, num_workers=..., persistent_workers=True)  # once for all epochs
for epoch in range(epochs):
    for batch in loader:
        ...
""",
    caveat="Reuse one DataLoader for all epochs: a new one starts new workers",
)
