"""Every epoch starts its workers anew."""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="persistent_workers",
    title="Keep the workers from epoch to epoch: persistent_workers=True",
    applies=lambda found: (
        found.named(limits="startup") and found.facts.workers > 0 and found.config.get("persistent_workers") is not True
    ),
    change=lambda _: {"persistent_workers": True},
    costs=("the workers' memory stays taken between epochs",),
    caveat="keep one DataLoader for all epochs: a new one starts its own workers",
)
