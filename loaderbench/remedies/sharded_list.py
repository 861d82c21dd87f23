"""Each rank holds the whole list of samples, and loads only its part of it.

Triggers when the dataset holds a long Python list, and several ranks share the memory of a machine.

What it does: divides the list among the ranks once, in place of a `DistributedSampler`.

How to confirm: host memory (PSS) of each rank falls by the share of the list that other ranks hold.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="sharded_list",
    title="Keep only each rank's part of the sample list",
    applies=lambda found: "object_list" in found.traits and found.facts.ranks > 1,
    untried="Not measured: it saves memory, not time",
    code="""import random

import torch.distributed as dist
from torch.utils.data import DataLoader

random.Random(0).shuffle(dataset.samples)  # in the same order in all ranks
ranks = dist.get_world_size()
end = len(dataset.samples) // ranks * ranks  # as many samples in each rank
dataset.samples = dataset.samples[dist.get_rank() : end : ranks]  # keep no other reference, such as ImageFolder.imgs
loader = DataLoader(dataset, batch_size=batch_size, shuffle=True)  # without a DistributedSampler
""",
    caveat="Each rank sees the same part of the samples in every epoch",
)
