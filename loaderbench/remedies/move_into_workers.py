"""The main process creates, draws or changes batches itself, and that work is serialized.

Triggers when the main process is the limit.

What it does: moves the work into the dataset, into `collate_fn`, or into a sampler drawn in advance.

How to confirm: profile again; CPU use of the main process falls.
"""

from __future__ import annotations

from loaderbench.diagnosis.limits import code_around, is_mostly_sampler, no_worker_would_help
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis

_TITLE = "Move work from the main process into the workers"


def _title(found: Diagnosis) -> str:
    if place := code_around(found.facts):
        into = "collate_fn" if found.facts.workers else "collate_fn, and load in worker processes"
        return f"Move the code of {place} into {into}"
    if is_mostly_sampler(found.facts):
        return "Draw all indices of an epoch at once in the sampler"
    return _TITLE if found.facts.workers else "Load in DataLoader worker processes, not in the main process"


REMEDY = CauseRemedy(
    id="move_into_workers",
    title=_TITLE,
    title_for=_title,
    applies=lambda found: (
        found.named(stages={"main_process"})
        and (code_around(found.facts) != "" or is_mostly_sampler(found.facts) or not no_worker_would_help(found.facts))
    ),
    code="""loader = DataLoader(dataset, sampler=list_of_indices, collate_fn=collate_and_process, num_workers=...)
""",
)
