"""Photos whose stages count their calls, and batches of a loader with one stage free."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch.utils.data import default_collate
from torchvision.datasets import ImageFolder
from torchvision.transforms import Compose, ToTensor

from loaderbench.freeing import Freeing
from loaderbench.freeing.loader import free_loader
from loaderbench.loaders import LOADER_BACKENDS

KEPT, BATCH, BATCHES = 4, 4, 6
ONE_WORKER = {"batch_size": BATCH, "num_workers": 1, "drop_last": True, "shuffle": True}


class Count:
    """Counts calls of a function, in all processes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.calls = function, multiprocessing.Value("i", 0)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self.calls.get_lock():
            self.calls.value += 1
        return self.function(*args, **kwargs)

    @property
    def made(self) -> int:
        return int(self.calls.value)


def open_rgb(path: str) -> Image.Image:
    with Image.open(path) as image:
        return image.convert("RGB")


class Darken:
    """A transform in place, as many are."""

    def __call__(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels.mul_(0.5)


class Counted:
    """Photos whose stages count their calls."""

    def __init__(self, photos: Path) -> None:
        self.decode, self.to_tensor, self.collate = Count(open_rgb), Count(ToTensor()), Count(default_collate)
        self.dataset = ImageFolder(str(photos), Compose([Step(self.to_tensor), Darken(), Square()]), loader=self.decode)


class Step:
    def __init__(self, count: Count) -> None:
        self.count = count

    def __call__(self, image: Any) -> Any:
        return self.count(image)


class Square:
    def __call__(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels[:, :8, :8]


def batches_with(dataset: Any, stage: str | None, count: int = BATCHES, **arguments: Any) -> list[Any]:
    made = LOADER_BACKENDS["torch"].build(dataset, {**ONE_WORKER, **arguments}, seed=0)
    free_loader(made, Freeing(stage, KEPT))
    iterator = iter(made.iterable)
    try:
        return list(islice(iterator, count))
    finally:
        made.close(iterator)


def distinct(batches: list[Any]) -> set[bytes]:
    return {image.numpy().tobytes() for images, _ in batches for image in images}
