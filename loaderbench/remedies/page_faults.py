"""Memory is given back to the kernel after each image, and zeroed again for the next."""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="page_faults",
    title="Keep memory between images: set PILLOW_BLOCKS_MAX=64 and glibc's thresholds before the start",
    applies=lambda found: found.named(limits="memory") and found.verdict.stage != "transport",
    code="""# before the start, in the shell:
# export PILLOW_BLOCKS_MAX=64
# export MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824
""",
    costs=("the memory of the largest image stays taken in every worker",),
)
