"""Moving batches to where they are used takes the loop its time.

Fires where a stage of the loop that is marked `transfer` bounds it.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="fewer_copies",
    title="Copy each batch once: pinned, non-blocking, and in the type that the model takes",
    applies=lambda found: found.verdict.bound == "transfer",
    code="""loader = DataLoader(dataset, pin_memory=True)
images = images.to(device, dtype=torch.float16, non_blocking=True)
""",
)
