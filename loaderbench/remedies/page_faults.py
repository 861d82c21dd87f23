"""Memory is given back to the kernel after each image, and zeroed again for the next.

Fires where the kernel's work on pages is the limit. Tried with Pillow's blocks and glibc's memory kept in each process.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="page_faults",
    title="Keep memory between images: PILLOW_BLOCKS_MAX=64 and glibc's thresholds",
    applies=lambda found: found.named(limits={"memory"}) and found.verdict.stage != "transport",
    change=lambda _: {"keep_memory": True},
    costs=("the memory of the largest images stays taken in every worker",),
    caveat="glibc only; Pillow's part works everywhere",
)
