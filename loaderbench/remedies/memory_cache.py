"""Every epoch decodes the same images again.

Triggers when decoding saturates the CPUs or reading waits for storage, and the decoded images should fit in a third of
the memory.

What it does: decodes all images once into shared memory that all workers read. In a run with the axis `ranks`, the
program of the report shares one cache per machine under torchrun.

How to confirm: measure again; read and decode time per sample fall.
"""

from __future__ import annotations

from loaderbench.datasets.image_folder import ON_DEVICE
from loaderbench.loaders import backend_of
from loaderbench.remedies.by_cause import CauseRemedy, option
from loaderbench.remedies.findings import Diagnosis

DECODED_PER_BYTE = 12  # bytes of pixels per byte of JPEG, typical of photographs
MOST_OF_MEMORY = 1 / 3


def _fits(found: Diagnosis) -> bool:
    known = found.files and found.facts.bytes_per_sample and found.shared_memory_bytes
    if not known:
        return False
    decoded = (found.files or 0) * (found.facts.bytes_per_sample or 0.0) * DECODED_PER_BYTE
    return decoded <= (found.shared_memory_bytes or 0) * MOST_OF_MEMORY


def _reads_copies(found: Diagnosis) -> bool:
    """Whether the loader reads shards or decodes by itself, in which case the dataset decodes nothing."""
    backend = backend_of({**found.loader, **found.config})
    return bool(backend.format) or backend.decodes


REMEDY = CauseRemedy(
    id="memory_cache",
    title="Cache decoded images in shared memory",
    effort=3,
    applies=lambda found: (
        (
            found.cpu_goes_to("decode")
            or found.named(stages={"read", "decode"}, limits={"storage_latency", "storage_bandwidth"})
        )
        and found.option("image_cache") is None
        and not found.option("storage")
        and not _reads_copies(found)
        and found.option("decoder") not in ("pillow_lazy", *ON_DEVICE)
        and _fits(found)
    ),
    change=option(image_cache="shared_memory"),
    relieves={"decode": 0.1, "read": 0.05},
    costs=("Shared memory for all decoded images, about 12 times the size of the files",),
    caveat="Startup decodes all images. Ranks on one machine must share the cache: add ranks to the sweep",
)
