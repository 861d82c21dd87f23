"""Batches of a loader over photographs, for tests of loaders that decode by themselves."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torchvision.datasets.folder import pil_loader

from loaderbench.datasets.decoders import decode_pillow
from loaderbench.datasets.image_samples import TRANSFORMS, ImageSamples, Recipe
from loaderbench.formats import StoredCopy
from loaderbench.loaders import LOADER_BACKENDS, Batches, LoaderBackend, backends_of

LONGEST_S = 30.0  # that a test waits for threads

INSTALLED = list(backends_of({"loader": "auto"}, {}))
every_loader = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in INSTALLED else pytest.mark.skip(reason=f"{name} is not installed"))
        for name in LOADER_BACKENDS
    ],
)

LEFTOVERS: dict[str, Callable[[str], bool]] = {
    "litdata": lambda name: "lit" in name or "chunks" in name,
    "streaming": lambda name: name[:6].isdigit(),
}
"""How to know by its name that a temporary file belongs to a loader's library."""


def left_behind(loader: str) -> set[str]:
    """Its shared memory, and its files in the folders for temporary files and caches."""
    places = [Path("/dev/shm"), Path(tempfile.gettempdir()), Path.home() / ".lightning"]
    found = [path for place in places if place.is_dir() for path in place.iterdir()]
    return {str(path) for path in found if LEFTOVERS[loader](path.name)}


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
