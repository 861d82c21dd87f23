"""Every epoch starts its workers anew.

Fires where more time goes to the beginnings of epochs than to all waits after them, with workers that do not persist.
"""

from loaderbench.remedies.by_cause import CauseRemedy

ONE_EPOCH = "a trial is one epoch without end, in which no epoch begins"

REMEDY = CauseRemedy(
    id="persistent_workers",
    title="Keep the workers from epoch to epoch: persistent_workers=True",
    effort=0,
    applies=lambda found: (
        found.named(limits={"startup"})
        and found.facts.workers > 0
        and found.config.get("persistent_workers") is not True
    ),
    change=lambda _: {"persistent_workers": True},
    untried=ONE_EPOCH,
    costs=("the workers' memory stays taken between epochs",),
    caveat="keep one DataLoader for all epochs: a new one starts its own workers",
)
