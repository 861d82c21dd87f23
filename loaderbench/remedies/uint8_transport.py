"""Workers convert samples to float32 and send four bytes per decoded byte.

Triggers when worker-to-main IPC or the host-to-device copy is the bottleneck. It also triggers when CPUs are saturated
and transforms are the bottleneck or at least 15% of the CPU time. For a script, this second case needs a GPU.

What it does: sends uint8 batches and normalizes them on the GPU. An emulated GPU does not model
the cost of normalizing.

How to confirm: throughput rises; profile the training script to see the step with normalization.
"""

from loaderbench.records import Config
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis


def _title(found: Diagnosis) -> str:
    """The title for a script that trains without a GPU, or else for an emulated or real GPU."""
    is_known = bool(_change(found)) or found.has_seen("float_samples")
    if found.profile and not found.accelerator:
        return "Send uint8 batches; normalize in the loop" if is_known else "Send uint8 batches, if they are float32"
    return "Normalize on the GPU" if is_known else "Normalize on the GPU, if samples are float32"


def _change(found: Diagnosis) -> Config:
    """The option to set; empty for a transform of the user's, which normalizes or does not."""
    own = ":" in str(found.option("transform"))
    return {"normalize": "device"} if found.has_options("normalize") and not own else {}


REMEDY = CauseRemedy(
    id="uint8_transport",
    title="Normalize on the GPU",
    title_for=_title,
    applies=lambda found: (
        (
            (found.cpu_goes_to("transform") and (found.accelerator or not (found.profile or found.step_on_cpu)))
            or (found.verdict.bound == "transfer" and found.has_options("normalize"))
            or (found.named(stages={"transport"}) and not found.facts.tiny_batches)
        )
        and found.option("normalize") != "device"
        and not found.has_seen("uint8_samples")
        and not found.has_seen("no_images")
    ),
    change=_change,
    relieves={"transform": 0.6, "collate": 0.3, "transport": 0.3},
    code="""import torch

mean = torch.tensor([0.485, 0.456, 0.406], device=device).view(3, 1, 1) * 255
std = torch.tensor([0.229, 0.224, 0.225], device=device).view(3, 1, 1) * 255

def normalized(images):  # uint8 images: remove ToTensor and Normalize from the dataset
    return (images.to(device, non_blocking=True).float() - mean) / std
""",
    caveat="Normalization moves to the training process; on a GPU it adds little to the step",
)
