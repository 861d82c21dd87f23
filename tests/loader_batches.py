"""Batches of a loader over photographs, for tests of loaders that decode by themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torchvision.datasets.folder import pil_loader

from loaderbench.datasets.image_samples import TRANSFORMS, ImageSamples, Recipe
from loaderbench.loaders import Batches, LoaderBackend

LONGEST_S = 30.0  # that a test waits for threads


def files_of(photos: Path) -> list[tuple[str, int]]:
    return [(str(path), number) for number, path in enumerate(sorted(photos.rglob("*.jpg")))]


def images(files: list[tuple[str, int]], transform: str = "imagenet_eval", normalizes: bool = True) -> ImageSamples:
    return ImageSamples(files, pil_loader, TRANSFORMS[transform](normalizes), Recipe(transform, normalizes))


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
