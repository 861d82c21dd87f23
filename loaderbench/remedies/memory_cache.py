"""Each epoch decodes the same images again: keep them decoded, in memory that all workers share.

Fires where reading or decoding is the limit and the decoded images should fit into a third of the memory. Tried with
all files of the run in shared memory; filling it takes as long as an epoch's decoding, once.
"""

from __future__ import annotations

from loaderbench.remedies.by_cause import CauseRemedy, option
from loaderbench.remedies.findings import Diagnosis

DECODED_PER_BYTE = 12  # bytes of pixels for each of a JPEG, about what photographs have
MOST_OF_MEMORY = 1 / 3


def _fits(found: Diagnosis) -> bool:
    known = found.files and found.facts.bytes_per_sample and found.shared_memory_bytes
    if not known:
        return False
    decoded = (found.files or 0) * (found.facts.bytes_per_sample or 0.0) * DECODED_PER_BYTE
    return decoded <= (found.shared_memory_bytes or 0) * MOST_OF_MEMORY


REMEDY = CauseRemedy(
    id="memory_cache",
    title="Keep the decoded images in shared memory",
    effort=3,
    applies=lambda found: (
        (
            found.cpu_goes_to("decode")
            or found.named(stages={"read", "decode"}, limits={"storage_latency", "storage_bandwidth"})
        )
        and found.option("image_cache") is None
        and found.option("decoder") != "pillow_lazy"
        and _fits(found)
    ),
    change=option(image_cache="shared_memory"),
    relieves={"decode": 0.1, "read": 0.05},
    costs=("memory for all decoded images, about twelve times their files",),
    caveat="the first epoch is as slow as before",
)
