"""Transforms work on PIL images or float32: v2 on uint8 tensors moves a quarter of the bytes.

Fires where the CPUs are full and transforms take a part of them that counts, with recipes of v1. Tried as
the same recipe by v2, converted last.
"""

from loaderbench.remedies.by_cause import CauseRemedy, option

REMEDY = CauseRemedy(
    id="transforms_v2_uint8",
    title="Use transforms v2 on uint8, and convert last",
    applies=lambda found: found.cpu_goes_to("transform") and found.option("transform") in (None, "imagenet_train"),
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
