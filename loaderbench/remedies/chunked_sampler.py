"""The sampler draws the indices of the whole epoch before the first batch.

Triggers when epoch starts cost more than all later waits, and the sampler takes most of each start.

What it does: draws a few thousand indices at a time, so the first batch waits for one chunk only.

How to confirm: profile several epochs; the boundary between them is close to one step.
"""

from loaderbench.diagnosis.limits import sampler_starts_slowly
from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="chunked_sampler",
    title="Draw the sampler's indices in chunks",
    applies=lambda found: found.named(limits={"startup"}) and sampler_starts_slowly(found.facts),
    code="""import torch
from torch.utils.data import DataLoader, Sampler

class Weighted(Sampler):  # example: torch's WeightedRandomSampler with replacement, in chunks
    def __init__(self, weights, num_samples):
        self.sums, self.num_samples = torch.as_tensor(weights, dtype=torch.double).cumsum(0), num_samples

    def __iter__(self):
        for start in range(0, self.num_samples, 4096):
            points = torch.rand(min(4096, self.num_samples - start), dtype=torch.double) * self.sums[-1]
            yield from torch.searchsorted(self.sums, points, right=True).tolist()

    def __len__(self):
        return self.num_samples

loader = DataLoader(dataset, batch_size=32, sampler=Weighted(weights, len(dataset)))
""",
)
