"""Transforms of PIL images or float32 tensors move four times the bytes of uint8.

Triggers when CPUs are saturated, a v1 recipe runs, and transforms are the bottleneck or at least 15% of the CPU time.
A line of your own Python code with most of the loading time rules it out. So does another library's transform, if no
v1 transform was seen.

What it does: runs the same recipe with transforms v2 on uint8, and converts to float last.

How to confirm: measure again; transform time per sample falls, and the report lists the PSNR.
"""

from loaderbench.remedies.by_cause import CauseRemedy, option
from loaderbench.remedies.own_line import is_own_python

REMEDY = CauseRemedy(
    id="transforms_v2_uint8",
    title="Use transforms v2 on uint8; convert to float last",
    title_in_code="Use transforms v2 on uint8, if you do not yet",
    evident="transforms_v1",
    changes_pixels=True,
    applies=lambda found: (
        found.cpu_goes_to("transform")
        and not is_own_python(found)
        and found.option("transform") in (None, "imagenet_train")
        and (
            found.has_seen("transforms_v1")
            or not (found.has_seen("transforms_v2") or found.has_seen("other_transforms"))
        )
    ),
    change=option(transform="imagenet_train_v2"),
    relieves={"transform": 0.7},
    code="""import torch
from torchvision.transforms import v2

transform = v2.Compose([
    v2.ToImage(),
    v2.RandomResizedCrop(224, antialias=True),
    v2.RandomHorizontalFlip(),
    v2.ToDtype(torch.float32, scale=True),
    v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
])
""",
)
