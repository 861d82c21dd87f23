"""A gain of the steady state, beside what each epoch loses at its start where it holds few samples."""

from __future__ import annotations

from dataclasses import replace

from loaderbench.diagnosis.epochs import epoch_costs
from loaderbench.diagnosis.wording import in_percent, in_seconds
from loaderbench.records import EpochCost, Recommendation
from loaderbench.remedies.findings import Findings

LARGE_SHARE = 0.1
"""Of an epoch's time: from here on its start eats a good part of what workers or larger batches give."""

_STARTS = {"batch_size", "num_workers"}
"""What changes how long an epoch takes to start."""


def with_start_told(told: Recommendation, findings: Findings) -> Recommendation:
    """The recommendation with a caveat where the start of each epoch is a large part of it; trials draw without end."""
    if told.status != "open" or told.basis != "measured" or not _STARTS & set(told.change):
        return told
    start = _start(told, findings)
    if start is None or start.share is None or start.share < LARGE_SHARE:
        return told
    caveat = (
        "the gain is that of the steady state: over so few samples each epoch also takes "
        f"{in_seconds(start.s_per_epoch)} to start, {in_percent(start.share)} of its time; "
        "persistent_workers=True, or a sampler that runs on, keeps most of the gain"
    )
    return replace(told, caveat="; ".join(filter(None, (told.caveat, caveat))))


def _start(told: Recommendation, findings: Findings) -> EpochCost | None:
    """What each epoch of the changed configuration loses until its first batch."""
    changed = [
        trial
        for trial in (*findings.trials, *findings.remedy_trials)
        if trial.id in told.trials and told.change.items() <= trial.config.items()
    ]
    return next((cost for cost in epoch_costs(changed) if cost.name == "first_batch"), None)
