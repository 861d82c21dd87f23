"""Every epoch starts its workers again.

Triggers when epoch starts cost more than all later waits, and workers do not persist.

What it does: keeps the worker processes alive between epochs.

How to confirm: profile several epochs; only the first one starts slowly.
"""

from loaderbench.remedies.by_cause import CauseRemedy

ONE_EPOCH = "Not measured: a trial runs one endless epoch"

REMEDY = CauseRemedy(
    id="persistent_workers",
    title="Set persistent_workers=True",
    effort=0,
    applies=lambda found: (
        found.named(limits={"startup"})
        and found.facts.workers > 0
        and found.config.get("persistent_workers") is not True
    ),
    change=lambda _: {"persistent_workers": True},
    untried=ONE_EPOCH,
    costs=("Worker memory stays allocated between epochs",),
    caveat="Reuse one DataLoader for all epochs: a new one starts new workers",
)
