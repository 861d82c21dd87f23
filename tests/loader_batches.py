"""Batches of a loader over photographs, for tests of loaders that decode by themselves."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torchvision.datasets.folder import pil_loader

from loaderbench.datasets.decoders import decode_pillow
from loaderbench.datasets.image_samples import TRANSFORMS, ImageSamples, Recipe
from loaderbench.formats import FORMATS, StoredCopy, written_copy
from loaderbench.loaders import LOADER_BACKENDS, Batches, LoaderBackend, backends_of
from loaderbench.loaders.seeded import SeededSamples

LONGEST_S = 30.0  # that a test waits for threads

INSTALLED = list(backends_of({"loader": "auto"}, {}))
every_loader = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in INSTALLED else pytest.mark.skip(reason=f"{name} is not installed"))
        for name in LOADER_BACKENDS
    ],
)

sharing_leftovers = pytest.mark.xdist_group("files that loaders leave")
"""For tests that look for those, and for others that use the libraries which make them: they run one after another."""

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


def check_closing(backend: LoaderBackend, source: Any, *, workers: int, taken: int | None) -> None:
    """It closes before the first batch (`None` taken), after some, and twice."""
    before = set(active_children())
    found = backend.build(source, {"batch_size": 2, "num_workers": workers, "shuffle": True}, seed=0)
    iterator = None if taken is None else iter(found.iterable)
    assert len(list(islice(() if iterator is None else iterator, taken))) == (taken or 0)
    assert len(set(active_children()) - before) == (0 if taken is None else workers)
    found.close(iterator)
    found.close(iterator)
    assert set(active_children()) <= before


def check_only_its_copy_is_read(
    backend: LoaderBackend, own: ImageSamples, files: list[tuple[str, int]], folder: Path
) -> None:
    """It refuses files, a copy in another format, a list, and samples seeded one by one."""
    as_zip = written_copy(files, "zip", FORMATS["zip"], cache_dir=folder)
    for source, said in (
        (images(files), "got ImageSamples$"),
        (stored(files, as_zip), "got a copy as zip$"),
        ([torch.zeros(1)], "got list$"),
        (SeededSamples(own, 0), "measure.deterministic"),
    ):
        with pytest.raises(TypeError, match=said):
            backend.build(source, {}, seed=0)


def wait_for(holds: Callable[[], bool]) -> None:
    until_s = time.monotonic() + LONGEST_S
    while not holds():
        assert time.monotonic() < until_s, "not in time"
        time.sleep(0.005)
