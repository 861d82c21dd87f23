"""The training step itself is the bottleneck.

Triggers when a profiled loop is compute-bound on a GPU.

What it does: runs the step in bfloat16 where that is safe, with `channels_last` memory format.

How to confirm: profile again; step time falls, and the loss converges as before.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="mixed_precision",
    title="Use mixed precision and channels_last",
    applies=lambda found: found.verdict.bound == "compute" and found.accelerator and found.profile,
    untried="Not measured: the training step is your own code",
    code="""import torch

model = model.to(memory_format=torch.channels_last)
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = criterion(model(images.contiguous(memory_format=torch.channels_last)), labels)
""",
    caveat="Changes results slightly: watch the loss",
)
