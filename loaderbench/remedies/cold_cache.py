"""Bytes come slower than they are used: keep them nearer, on a local disk or in memory.

Fires where reading waits for a storage.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="cold_cache",
    title="Stage the files on a local disk, or in memory, before training",
    applies=lambda found: found.named(stages={"read"}, limits={"storage_bandwidth", "storage_latency"}),
    untried="which disk is nearer is not known here",
    code="""import shutil, tempfile
from pathlib import Path

local = Path(tempfile.gettempdir()) / "dataset"  # a local disk, or /dev/shm where memory allows
if not local.exists():
    shutil.copytree(root, local)
root = local
""",
    costs=("a copy of the files",),
    caveat="the copy takes as long as one epoch's reading, once",
)
