"""Storage delivers bytes more slowly than training uses them.

Triggers when reading waits for storage.

What it does: copies the files once to a local disk or to memory, and trains from the copy.

How to confirm: run again with `--data` set to the copy; data wait falls.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="cold_cache",
    title="Copy the files to local disk or memory before training",
    applies=lambda found: found.named(stages={"read"}, limits={"storage_bandwidth", "storage_latency"}),
    untried="Not measured: a trial has no faster disk to copy to",
    code="""import hashlib, shutil, tempfile
from pathlib import Path

root = Path(root).absolute()
fast = Path(tempfile.gettempdir())  # a local disk, or /dev/shm if memory allows
local = fast / f"{root.name}-{hashlib.sha256(str(root).encode()).hexdigest()[:8]}"
if not local.exists():
    part = Path(tempfile.mkdtemp(dir=fast))  # if the program is stopped, no copy is incomplete
    shutil.copytree(root, part, dirs_exist_ok=True)
    part.rename(local)
root = local
""",
    costs=("Disk or RAM for a copy of the files",),
    caveat="Copying takes as long as reading one epoch, but only once",
)
