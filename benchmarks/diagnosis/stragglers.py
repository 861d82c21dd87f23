"""One sample in a hundred is slow, and the finished batches behind it wait for their turn."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from PIL import Image
from torch.utils.data import DataLoader, Dataset, RandomSampler
from torchvision.datasets import ImageFolder
from torchvision.datasets.folder import default_loader

from benchmarks.diagnosis import work
from benchmarks.diagnosis.data import large_photos, photo_paths, presized_photos
from benchmarks.diagnosis.decoding import V1
from benchmarks.diagnosis.opaque_data import ENDLESS, Endless, Stream
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device

EVERY = 100


class Sleepy(Endless):
    """`ms` for most, `slow_s` for one in a hundred."""

    def __init__(self, ms: float, slow_s: float, compute: bool = False) -> None:
        super().__init__(ms)
        self.slow_s, self.compute = slow_s, compute

    def __getitem__(self, index: int) -> Any:
        slow = (index * 2_654_435_761 >> 7) % EVERY == 0  # spread as by chance, the same each time
        if slow and self.compute:
            return work.sample(index, work.python(self.slow_s * 1e3))
        time.sleep(self.slow_s if slow else self.ms / 1e3)
        return work.sample(index)


class MixedPhotos(Dataset[Any]):
    """Small photos, and one in sixty of 48 megapixels."""

    def __init__(self, rare: bool = True) -> None:
        small = photo_paths()
        huge = sorted(str(path) for path in large_photos((8000, 6000), 2).rglob("*.jpg"))
        self.paths = [huge[place // 60 % 2] if rare and place % 60 == 37 else path for place, path in enumerate(small)]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        with Image.open(self.paths[index]) as image:
            return V1(image.convert("RGB")), index


class Hesitating:
    """A folder's loader, to which one file in a hundred comes late."""

    def __init__(self, slow_s: float) -> None:
        self.slow_s = slow_s

    def __call__(self, path: str) -> Any:
        if int(Path(path).stem) % EVERY == 17:
            time.sleep(self.slow_s)
        return default_loader(path)


def sleepy(workers: int, *, slow_s: float = 0.3, compute: bool = False, stream: bool = False, **more: Any) -> Loop:
    dataset = Sleepy(0.5, slow_s, compute)
    source = Stream(dataset) if stream else dataset
    return Loop(lambda: DataLoader(source, 4, num_workers=workers, **more), device(4), seconds=5.0)


def drawn(dataset: Dataset[Any], workers: int, **more: Any) -> Loop:
    sampler = RandomSampler(dataset, replacement=True, num_samples=ENDLESS)  # type: ignore[arg-type]
    return Loop(lambda: DataLoader(dataset, 4, sampler=sampler, num_workers=workers, **more), device(8), seconds=5.0)


def mixed(workers: int, *, rare: bool = True, **more: Any) -> Loop:
    return drawn(MixedPhotos(rare), workers, **more)


def hesitating(workers: int, *, slow_s: float = 0.4, **more: Any) -> Loop:
    return drawn(ImageFolder(str(presized_photos()), V1, loader=Hesitating(slow_s)), workers, **more)


FIXED = {"out_of_order": {"in_order": False}, "slow_samples": {"slow_s": 0.0005}}

SCENARIOS = (
    Scenario(
        "straggler_sleep_w4",
        "One sample in a hundred sleeps 0.3 s; three of four workers are done and wait.",
        sleepy,
        {"workers": 4},
        because_of("stragglers", "order"),
        FIXED,
    ),
    Scenario(
        "straggler_sleep_w2",
        "The same with two workers.",
        sleepy,
        {"workers": 2},
        because_of("stragglers", "order"),
        FIXED,
    ),
    Scenario(
        "straggler_compute_w2",
        "One sample in a hundred computes 0.25 s, while the other worker has to wait.",
        sleepy,
        {"workers": 2, "compute": True, "slow_s": 0.25},
        because_of("stragglers", "order"),
        FIXED,
    ),
    Scenario(
        "straggler_photo_w2",
        "One photo in sixty has 48 megapixels.",
        mixed,
        {"workers": 2},
        because_of("stragglers", "order"),
        {"out_of_order": {"in_order": False}, "slow_samples": {"rare": False}},
    ),
    Scenario(
        "straggler_file_w3",
        "One file in a hundred comes 0.4 s late.",
        hesitating,
        {"workers": 3},
        because_of("stragglers", "order"),
        FIXED,
    ),
)
