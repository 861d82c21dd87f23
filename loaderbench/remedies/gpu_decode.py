"""Decoding saturates the CPUs, and a GPU can decode JPEGs.

Triggers when CPUs are saturated, a GPU is present, and decoding is the bottleneck or at least 15% of the CPU time.

What it does: reads files in workers and decodes them on the GPU in the training loop.

How to confirm: profile the training script again; CPU use and data wait fall.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="gpu_decode",
    title="Decode JPEGs on the GPU: decode_jpeg(device='cuda')",
    applies=lambda found: found.accelerator and found.cpu_goes_to("decode"),
    untried="Not measured: it also changes collate_fn and the training step",
    code="""import torch
from torchvision.io import ImageReadMode, decode_jpeg, read_file

def collate(samples):  # of (path, label): workers read the files, the loop decodes them
    return [read_file(path) for path, _ in samples], torch.tensor([label for _, label in samples])

for files, labels in loader:  # made with collate_fn=collate; torchvision 0.29 deprecates this in favor of TorchCodec
    images = decode_jpeg(files, mode=ImageReadMode.RGB, device="cuda")  # a list: crop and stack it on the GPU
""",
    costs=("GPU memory and GPU time",),
    changes_pixels=True,
)
