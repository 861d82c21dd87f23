"""Opening and reading many small files takes longer than decoding them.

Triggers when reading waits for storage latency.

What it does: packs the files into a few large tar shards and reads them in sequence.

How to confirm: run again on the shards; workers are blocked in reads less often.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="pack_small_files",
    title="Pack files into tar shards, at least one per worker",
    applies=lambda found: found.named(stages={"read"}, limits={"storage_latency"}) and found.facts.is_loader,
    untried="Not measured: it needs a packed copy on the same storage. In a suite with an image folder, let "
    "LOADERBENCH_CACHE name a folder there and run with -P format=files,tar",
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
