"""Epochs are so short that starting them takes most of the time.

Triggers when epoch starts cost more than all later waits, without workers or with `persistent_workers=True`.

What it does: joins many epochs into one pass, with an endless sampler or in an iterable dataset's `__iter__`, so
prefetching never stops.

How to confirm: profile again; time to first batch occurs once instead of every epoch.
"""

from loaderbench.diagnosis.limits import sampler_starts_slowly
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis

_TITLE = "Use an endless sampler: many epochs in one pass"


def _title(found: Diagnosis) -> str:
    if found.call is not None:
        return "Let __iter__ yield many epochs in one pass"
    return "Let the dataset's __iter__ yield many epochs in one pass" if found.has_seen("stream") else _TITLE


REMEDY = CauseRemedy(
    id="larger_epochs",
    title=_TITLE,
    applies=lambda found: (
        found.named(limits={"startup"})
        and (found.facts.workers == 0 or found.workers_persist)
        and not found.has_seen("new_loader")
        and not sampler_starts_slowly(found.facts)
    ),
    title_for=_title,
    code="""import torch
from torch.utils.data import DataLoader, Sampler

class Endless(Sampler):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        while True:
            yield from torch.randperm(self.length).tolist()

loader = DataLoader(dataset, batch_size=32, sampler=Endless(len(dataset)), drop_last=True)
""",
)
