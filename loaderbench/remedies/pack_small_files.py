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
    code="""import io, random, tarfile
from PIL import Image
from torch.utils.data import IterableDataset, get_worker_info
from torchvision.datasets.folder import IMG_EXTENSIONS

# Make shards of shuffled files, in the folder of the classes:
#   find -L . -type f -printf '%P\\n' | shuf | split -n r/64 - list-
#   for list in list-*; do tar -chf $list.tar -T $list; done
class Shards(IterableDataset):
    def __init__(self, shards, transform, classes, buffer=1000):
        self.shards, self.transform, self.classes, self.buffer = shards, transform, classes, buffer

    def __iter__(self):
        worker, waiting = get_worker_info(), []
        shards = self.shards[worker.id::worker.num_workers] if worker else self.shards
        for shard in random.sample(shards, len(shards)):
            with tarfile.open(shard, "r|") as files:
                for file in files:
                    if file.isfile() and file.name.lower().endswith(IMG_EXTENSIONS):
                        waiting.append((file.name, files.extractfile(file).read()))
                    if len(waiting) > self.buffer:
                        yield self.sample(*waiting.pop(random.randrange(len(waiting))))
        random.shuffle(waiting)
        yield from (self.sample(*one) for one in waiting)

    def sample(self, name, data):
        image = Image.open(io.BytesIO(data)).convert("RGB")
        label = self.classes.index(name.split("/")[0]) if "/" in name else 0  # 0 without class folders
        return self.transform(image), label
""",
    caveat="Changes sample order: shuffling works by shard and within a buffer of 1,000 files",
)
