"""Opening and reading small files one by one takes longer than decoding them: pack them into few large ones.

Fires where reading waits for answers of a storage. It was measured to help on network and object storage, and not on
local disks.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="pack_small_files",
    title="Pack the files into tar shards, at least one for each worker",
    applies=lambda found: found.named(stages={"read"}, limits={"storage_latency"}) and found.facts.is_loader,
    untried="packing needs a copy of the data set on its own storage",
    code="""import io, tarfile
from PIL import Image
from torch.utils.data import IterableDataset, get_worker_info

class Shards(IterableDataset):  # of tars made by: tar --sort=name -cf shard-000.tar class_a class_b
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
    caveat="samples are shuffled by shards and within a buffer, no longer freely: order changes",
)
