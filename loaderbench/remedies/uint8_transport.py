"""Samples become float32 in the workers: four bytes for each that was decoded. Normalise where they are used.

Fires where transport is the limit, or the CPUs are full and transforms take a part of them that counts. Tried as
batches of uint8; normalising them on the device is part of a model's step, and free for an emulated accelerator.
"""

from loaderbench.remedies.by_cause import CauseRemedy, option

REMEDY = CauseRemedy(
    id="uint8_transport",
    title="Send uint8 batches, and normalise them on the device",
    applies=lambda found: (
        (found.cpu_goes_to("transform") or (found.named(stages={"transport"}) and not found.facts.tiny_batches))
        and found.option("normalize") != "device"
    ),
    change=option(normalize="device"),
    relieves={"transform": 0.6, "collate": 0.3, "transport": 0.3},
    code="""import torch

mean = torch.tensor([0.485, 0.456, 0.406], device=device).view(3, 1, 1) * 255
std = torch.tensor([0.229, 0.224, 0.225], device=device).view(3, 1, 1) * 255

def normalized(images):  # of uint8: leave ToTensor and Normalize out of the dataset
    return (images.to(device, non_blocking=True).float() - mean) / std
""",
    caveat="the model's own step takes on the normalising, which costs a device next to nothing",
)
