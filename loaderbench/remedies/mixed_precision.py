"""The step itself is the limit: compute in half precision where that is safe.

Fires where the loader keeps up with a device.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="mixed_precision",
    title="Compute the step in mixed precision, channels last",
    applies=lambda found: found.verdict.bound == "compute" and found.accelerator and found.profile,
    untried="the step is the user's own",
    code="""model = model.to(memory_format=torch.channels_last)
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = criterion(model(images.contiguous(memory_format=torch.channels_last)), labels)
""",
    caveat="it changes numbers a little; watch the loss",
)
