"""Profile a custom loader: batches from a thread pool, with stages marked by hand.

    uv pip install path/to/loaderbench  # the clone
    loaderbench photos /tmp/photos
    python examples/custom_loader.py /tmp/photos

Any iterable of batches can be profiled. `stage` marks parts of the loader or the loop, as a decorator or with `with`.
Work in the loader's own threads is not split into stages; the time the loop waits for them is measured.
"""

import argparse
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torchvision.io import ImageReadMode, decode_jpeg, read_file
from torchvision.transforms.v2 import functional as F

from loaderbench import Profiler

prof = Profiler("custom loader", warmup=2)


class ThreadedLoader:
    """Decodes the files of a batch in threads, and stacks them in the main thread."""

    def __init__(self, paths: list[Path], batch_size: int, threads: int) -> None:
        self.paths, self.batch_size = paths, batch_size
        self.pool = ThreadPoolExecutor(threads)

    def __len__(self) -> int:
        return len(self.paths) // self.batch_size

    def __iter__(self) -> Iterator[torch.Tensor]:
        order = random.sample(self.paths, len(self.paths))
        for start in range(0, len(self) * self.batch_size, self.batch_size):
            with prof.stage("threads"):
                images = list(self.pool.map(self.load, order[start : start + self.batch_size]))
            yield self.collate(images)

    @prof.stage("collate")
    def collate(self, images: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack(images)

    def load(self, path: Path) -> torch.Tensor:
        image = decode_jpeg(read_file(str(path)), mode=ImageReadMode.RGB)
        return F.resize(image, [224, 224])


@prof.stage("normalize")
def normalize(images: torch.Tensor) -> torch.Tensor:
    return F.normalize(F.to_dtype(images, torch.float32, scale=True), [0.5] * 3, [0.25] * 3)


def train(folder: str, threads: int) -> None:
    loader = ThreadedLoader(sorted(Path(folder).rglob("*.jpg")), batch_size=4, threads=threads)
    with prof:
        for _ in range(4):
            for images in prof.iter(loader):
                normalize(images)
                with prof.stage("step"):
                    time.sleep(0.005)  # in place of a training step
    print(prof.result)
    prof.result.to_html("custom_loader.html")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Profile a loader other than DataLoader.")
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    train(arguments.folder, arguments.threads)
