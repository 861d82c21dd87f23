"""Memory returns to the kernel after each image and is zeroed again for the next one.

Triggers when page-fault overhead is the limit.

What it does: keeps freed memory in each worker, through Pillow's block cache and glibc's malloc thresholds.

How to confirm: page faults per sample and kernel CPU time fall.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="page_faults",
    title="Set PILLOW_BLOCKS_MAX=64 and glibc malloc thresholds",
    applies=lambda found: found.named(limits={"memory"}) and found.verdict.stage != "transport",
    change=lambda _: {"keep_memory": True},
    costs=("Memory of the largest images stays allocated in every worker",),
    caveat="The malloc thresholds need glibc; the Pillow part works everywhere",
)
