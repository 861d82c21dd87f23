"""Opening and reading many small files takes longer than decoding them.

Triggers when reading waits for storage latency.

What it does: packs the files into a few large tar shards and reads them in sequence.

How to confirm: set LOADERBENCH_CACHE to a folder on the same storage, and run a suite with `-P format=files,tar`.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="pack_small_files",
    title="Pack files into tar shards, at least one per worker",
    applies=lambda found: found.named(stages={"read"}, limits={"storage_latency"}) and found.facts.is_loader,
    untried="Not measured: it needs a packed copy on the same storage",
    code="""import io, tarfile
from PIL import Image
from torch.utils.data import IterableDataset, get_worker_info

class Shards(IterableDataset):  # make them with: tar --sort=name -cf shard-000.tar class_a class_b
    def __init__(self, shards, transform, classes):
        self.shards, self.transform, self.classes = shards, transform, classes

    def __iter__(self):
        worker = get_worker_info()
        for shard in self.shards[worker.id::worker.num_workers] if worker else self.shards:
            with tarfile.open(shard, "r|") as files:
                for file in files:
                    if file.isfile():
                        label = self.classes.index(file.name.split("/")[0])
                        image = Image.open(io.BytesIO(files.extractfile(file).read())).convert("RGB")
                        yield self.transform(image), label
""",
    caveat="Changes sample order: shuffling works by shard and within a buffer",
)
