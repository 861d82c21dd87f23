"""Decoding saturates the CPUs, and NVIDIA DALI can decode JPEGs on the GPU.

Triggers when CPUs are saturated, and decoding is the bottleneck or at least 15% of the CPU time. It needs an NVIDIA GPU
and a folder of images, and is measured only if DALI is installed.

What it does: reads files in workers and decodes them with DALI on the GPU, as part of the training step. Unlike
torchvision on a GPU, DALI interpolates colors as CPU decoders do.

How to confirm: measure again on the GPU; throughput rises although the step takes longer.
"""

from __future__ import annotations

from loaderbench.datasets.dali import INSTALL, is_installed
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis
from loaderbench.remedies.gpu_decode import decode_by, decodes_on_cpus

NOT_INSTALLED = (
    f"Not measured: DALI is not installed. Run `{INSTALL}`, then `loaderbench run SUITE -P decoder=pillow,dali`"
)


def _applies(found: Diagnosis) -> bool:
    on_nvidia = found.accelerator and found.gpu_kind == "cuda"
    return on_nvidia and decodes_on_cpus(found) and bool(decode_by("dali")(found))


REMEDY = CauseRemedy(
    id="gpu_decode_dali",
    title="Decode JPEGs on the GPU with DALI",
    applies=_applies,
    change=decode_by("dali"),
    untried_for=lambda _: "" if is_installed() else NOT_INSTALLED,
    relieves={"decode": 0.0, "transform": 0.0},
    effort=2,
    costs=("GPU memory, and a longer training step", "One more package"),
    changes_pixels=True,
)
