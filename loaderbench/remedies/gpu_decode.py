"""Decoding saturates the CPUs, and a GPU can decode JPEGs.

Triggers when CPUs are saturated, and decoding is the bottleneck or at least 15% of the CPU time. It needs a GPU, or a
suite that names one to emulate.

What it does: reads files in workers and decodes, crops and normalizes them on the GPU, as part of the training step.

How to confirm: measure again on the GPU; throughput rises although the step takes longer.
"""

from __future__ import annotations

from loaderbench.datasets.image_folder import DEVICE_TRANSFORMS, ON_DEVICE
from loaderbench.records import Config
from loaderbench.remedies.by_cause import CauseRemedy, Change
from loaderbench.remedies.findings import Diagnosis

NO_DECODER = "Not measured: torchvision decodes on CUDA devices only"
NO_GPU = "Not measured: no GPU here. Measure it where the GPU is"


def decode_by(decoder: str) -> Change:
    """Return the change to a GPU decoder; it is empty for other transforms, which may need a Pillow image."""

    def change(found: Diagnosis) -> Config:
        if not found.has_options("decoder") or found.option("transform") not in DEVICE_TRANSFORMS:
            return {}
        return {"decoder": decoder}

    return change


def decodes_on_cpus(found: Diagnosis) -> bool:
    """Whether decoding saturates the CPUs, and is neither on the GPU already nor cached for all epochs."""
    decodes_each = found.option("decoder") not in ON_DEVICE and found.option("image_cache") is None
    return decodes_each and found.cpu_goes_to("decode")


REMEDY = CauseRemedy(
    id="gpu_decode",
    title="Decode JPEGs on the GPU",
    applies=lambda found: (found.accelerator or found.gpu_named) and decodes_on_cpus(found),
    change=decode_by("device"),
    untried_for=lambda found: NO_GPU if not found.accelerator else "" if found.gpu_kind == "cuda" else NO_DECODER,
    relieves={"decode": 0.0, "transform": 0.0},
    effort=2,
    code="""import torch
from torchvision.io import ImageReadMode, decode_jpeg, read_file

def collate(samples):  # of (path, label): workers read the files, the loop decodes them
    return [read_file(path) for path, _ in samples], torch.tensor([label for _, label in samples])

stream = torch.cuda.Stream()
for files, labels in loader:  # made with collate_fn=collate; torchvision 0.29 deprecates this in favor of TorchCodec
    with torch.cuda.stream(stream):  # or torchvision overwrites images that queued work still reads
        images = decode_jpeg(files, mode=ImageReadMode.RGB, device="cuda")  # a list: crop and stack it on the GPU
    torch.cuda.current_stream().wait_stream(stream)
    for image in images:
        image.record_stream(torch.cuda.current_stream())
""",
    costs=("GPU memory, and a longer training step",),
    changes_pixels=True,
)
