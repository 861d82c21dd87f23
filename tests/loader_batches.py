"""Batches of a loader over photographs, for tests of loaders that decode by themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torchvision.datasets.folder import pil_loader

from loaderbench.datasets.decoders import decode_pillow
from loaderbench.datasets.image_samples import TRANSFORMS, ImageSamples, Recipe
from loaderbench.formats import StoredCopy
from loaderbench.loaders import Batches, LoaderBackend

LONGEST_S = 30.0  # that a test waits for threads


def files_of(photos: Path) -> list[tuple[str, int]]:
    return [(str(path), number) for number, path in enumerate(sorted(photos.rglob("*.jpg")))]


def images(files: list[tuple[str, int]], transform: str = "imagenet_eval", normalizes: bool = True) -> ImageSamples:
    return ImageSamples(files, pil_loader, TRANSFORMS[transform](normalizes), Recipe(transform, normalizes))


def stored(files: list[tuple[str, int]], copy: StoredCopy, transform: str = "imagenet_eval") -> ImageSamples:
    """The same with a copy for a loader of one format."""
    return ImageSamples(files, decode_pillow, TRANSFORMS[transform](True), Recipe(transform, True), copy)


def tiny_images(folder: Path) -> list[tuple[str, int]]:
    """40 small images: fast to decode, and 20 parts of a copy have two each."""
    found = [(str(folder / f"{number:02d}.png"), number) for number in range(40)]
    for path, number in found:
        Image.new("RGB", (8, 8), (number, 0, 0)).save(path)
    return found


@contextmanager
def built(backend: LoaderBackend, source: Any, seed: int = 3, **arguments: Any) -> Iterator[Batches]:
    batches = backend.build(source, arguments, seed=seed)
    try:
        yield batches
    finally:
        batches.close()


def drawn(backend: LoaderBackend, source: Any, batches: int, **arguments: Any) -> list[Any]:
    """All images and all labels of the first batches."""
    with built(backend, source, **arguments) as found:
        return [torch.cat(parts) for parts in zip(*islice(found.iterable, batches), strict=True)]


def wait_for(holds: Callable[[], bool]) -> None:
    until_s = time.monotonic() + LONGEST_S
    while not holds():
        assert time.monotonic() < until_s, "not in time"
        time.sleep(0.005)
