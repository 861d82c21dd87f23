"""The training step itself is the bottleneck.

Triggers when a profiled loop is compute-bound on a CUDA GPU.

What it does: runs the step in bfloat16 where that is safe, and on images in the `channels_last` memory format.

How to confirm: profile again; step time falls, and the loss converges as before.
"""

from loaderbench.remedies.by_cause import CauseRemedy

_TITLE = "Use mixed precision and channels_last"
_WITH_IMAGES = """import torch

model = model.to(memory_format=torch.channels_last)
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = criterion(model(images.contiguous(memory_format=torch.channels_last)), labels)
"""
_WITHOUT_IMAGES = """import torch

with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = criterion(model(inputs), labels)
"""

REMEDY = CauseRemedy(
    id="mixed_precision",
    title=_TITLE,
    applies=lambda found: (
        found.verdict.bound == "compute" and found.accelerator and found.profile and found.gpu_kind == "cuda"
    ),
    title_for=lambda found: "Use mixed precision" if found.has_seen("no_images") else _TITLE,
    code=_WITH_IMAGES,
    code_for=lambda found: _WITHOUT_IMAGES if found.has_seen("no_images") else _WITH_IMAGES,
    untried="Not measured: the training step is your own code",
    caveat="Changes results slightly: watch the loss",
)
