"""Epochs are so short that most of their time is their beginning.

Fires where that is so without workers, or with workers that persist already.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="larger_epochs",
    title="Let one pass of the loader hold many epochs: an endless sampler",
    applies=lambda found: (
        found.named(limits={"startup"}) and (found.facts.workers == 0 or found.config.get("persistent_workers") is True)
    ),
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
