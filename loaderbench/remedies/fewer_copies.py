"""Copying batches to the GPU takes longer than training on them.

Triggers when the training loop marks a stage `transfer` and that stage bounds it.

What it does: copies each batch once, from pinned memory, without blocking, in the model's data type.

How to confirm: profile again; the transfer share of the step falls.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="fewer_copies",
    title="Copy each batch once: pinned, non-blocking, final dtype",
    applies=lambda found: found.verdict.bound == "transfer",
    code="""loader = DataLoader(dataset, pin_memory=True)
images = images.to(device, dtype=torch.float16, non_blocking=True)
""",
)
