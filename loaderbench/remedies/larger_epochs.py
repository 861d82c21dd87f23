"""Epochs are so short that most of their time is their beginning."""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="larger_epochs",
    title="Let one pass of the loader hold many epochs: an endless sampler",
    applies=lambda found: (
        found.named(limits="startup") and (found.facts.workers == 0 or found.config.get("persistent_workers") is True)
    ),
    code="""import torch

def endless(dataset):  # as batches' sampler: DataLoader(dataset, sampler=endless(dataset), ...)
    while True:
        yield from torch.randperm(len(dataset)).tolist()
""",
)
