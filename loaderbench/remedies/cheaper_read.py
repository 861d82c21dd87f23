"""Reading is the dearest stage, and the CPUs are full: fewer bytes, or fewer files.

Fires where that is so. The change is in how the files are stored.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="cheaper_read",
    title="Read less: smaller files, or a memory map of one large one",
    applies=lambda found: found.named(stages={"read"}, limits={"cpu", "workers", "memory"}),
)
