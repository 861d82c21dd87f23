"""Reading is the largest stage, although the storage is not the limit.

Triggers when reading is the largest stage and the CPUs, the workers or page faults limit it.

What it does: reads fewer bytes from fewer files, for example through one memory-mapped file.

How to confirm: measure again; the share of read in the time per sample falls.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="cheaper_read",
    title="Read less: smaller files or one memory-mapped file",
    applies=lambda found: found.named(stages={"read"}, limits={"cpu", "workers", "memory", "neighbors"}),
)
