"""Some workers have most of the data, and others are idle.

Triggers when work is uneven across workers, for example if an iterable dataset has one large shard.

What it does: gives each worker an equal part of the data.

How to confirm: profile again; no worker is idle while another loads a batch.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="even_shards",
    title="Divide the data evenly among workers",
    applies=lambda found: found.named(limits={"imbalance"}) and found.verdict.stage is not None,
    code="""import torch.utils.data

class Even(torch.utils.data.IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        for shard in self.shards[info.id :: info.num_workers]:  # of one size, at least one per worker
            yield from self.samples_of(shard)
""",
)
