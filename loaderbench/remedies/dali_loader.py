"""Decoding takes much of the CPU time, and NVIDIA DALI decodes only the crop of a JPEG.

Triggers when CPUs are saturated, and decoding is the bottleneck or at least 15% of the CPU time. It needs a folder of
images with a named transform, and is measured only if DALI is installed.

What it does: replaces the `DataLoader`. Threads of DALI read, decode and transform, on the GPU if there is one. A
crop is drawn before its image is decoded.

How to confirm: measure again with `-P loader=torch,dali -P threads=auto`; throughput rises, and CPU time per sample
falls.
"""

from __future__ import annotations

import math

from loaderbench.loaders import AXIS, DEFAULT_BACKEND, LOADER_BACKENDS
from loaderbench.loaders.dali_loader import OPERATIONS
from loaderbench.records import Config
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis
from loaderbench.remedies.gpu_decode import decodes_on_cpus

DALI = LOADER_BACKENDS["dali"]
NOT_INSTALLED = (
    f"Not measured: DALI is not installed. Run `{DALI.install}`, then "
    "`loaderbench run SUITE -P loader=torch,dali -P threads=auto`"
)


def _change(found: Diagnosis) -> Config:
    """DALI with one thread per CPU of a rank; empty for a custom transform, for which DALI has no operations."""
    if not found.has_options("decoder") or found.option("transform") not in (None, *OPERATIONS):
        return {}
    return {AXIS: "dali", "threads": max(1, math.ceil(found.facts.cpus / found.facts.ranks))}


REMEDY = CauseRemedy(
    id="dali_loader",
    title="Load with NVIDIA DALI instead of a DataLoader",
    applies=lambda found: (
        bool(_change(found))
        and decodes_on_cpus(found)
        and not found.option("storage")
        and found.config.get(AXIS) in (None, DEFAULT_BACKEND)
    ),
    change=_change,
    untried_for=lambda _: "" if DALI.is_installed() else NOT_INSTALLED,
    relieves={"decode": 0.5, "transform": 0.5},
    effort=2,
    costs=("DALI draws its own random crops", "One more package, of about 600 MB"),
    changes_pixels=True,
)
