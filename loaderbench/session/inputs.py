"""What the trials read and what eats it, found out before anything is measured."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from loaderbench.datasets.image_folder import scan_image_folder
from loaderbench.datasets.page_cache import warm
from loaderbench.datasets.photos import cached_photos
from loaderbench.errors import MissingError
from loaderbench.records import DatasetSummary
from loaderbench.session.listener import Listener
from loaderbench.suite import ImageFolder, LoadedSuite


@dataclass(frozen=True)
class Inputs:
    """The files of an image folder (none for a target), and what to say of them."""

    samples: tuple[tuple[str, int], ...]
    summary: DatasetSummary


def check_inputs(loaded: LoadedSuite) -> str:
    """Say what will be read, importing nothing that the suite names. Raises `MissingError` where it is not there."""
    dataset = loaded.suite.dataset
    if not isinstance(dataset, ImageFolder):
        return f"what {dataset.target} returns"
    _check_packages(loaded)
    root = root_of(dataset, loaded.folder)
    if root is None:
        return f"{dataset.generate.images:,} photo-like JPEGs, generated once into the cache"
    files = scan_image_folder(root, dataset.sample)
    return _describe(len(files.samples), len(files.classes), files.complete, dataset.root or "")


def prepare_inputs(loaded: LoadedSuite, listener: Listener) -> Inputs:
    """Find or make the files, and read them once where the suite measures a warm page cache."""
    dataset = loaded.suite.dataset
    if not isinstance(dataset, ImageFolder):
        why = "the target's own matter"
        reasons = dict.fromkeys(("files", "classes", "total_files", "bad_files"), why)
        return Inputs((), DatasetSummary(f"what {dataset.target} returns", not_measured=reasons))
    _check_packages(loaded)
    root = root_of(dataset, loaded.folder)
    if root is None:
        made = dataset.generate
        listener.doing(f"looking for {made.images:,} photo-like JPEGs in the cache")
        root = cached_photos(images=made.images, seed=made.seed, like=made.like, on_progress=listener.generating)
        description = f"{made.images:,} photo-like JPEGs, generated (like {made.like}, seed {made.seed})"
    else:
        listener.doing(f"looking for images in {root}")
        description = None
    files = scan_image_folder(root, dataset.sample)
    count, classes = len(files.samples), len(files.classes)
    description = description or _describe(count, classes, files.complete, dataset.root or "")
    if loaded.suite.measure.cache == "warm":
        listener.doing(f"reading {count:,} file{'s' if count > 1 else ''} once, for a warm page cache")
        warm(path for path, _ in files.samples)
    total = count if files.complete else None
    reasons = {"bad_files": "the files were not decoded before the trials: dataset.skip_bad is off"}
    if total is None:
        reasons["total_files"] = "the folder was sampled and not listed to its end"
    return Inputs(files.samples, DatasetSummary(description, count, classes, total, not_measured=reasons))


def _check_packages(loaded: LoadedSuite) -> None:
    """Raise `MissingError` for a decoder whose package is not there: each of its trials would fail by it."""
    dataset, axis = loaded.suite.dataset, loaded.suite.sweep.get("decoder", [])
    named = [getattr(dataset, "decoder", None), *(axis if isinstance(axis, list) else [axis])]
    if "simplejpeg" in named and find_spec("simplejpeg") is None:
        raise MissingError("decoder simplejpeg: the package simplejpeg is not installed; `uv pip install simplejpeg`")


def root_of(dataset: ImageFolder, folder: Path) -> Path | None:
    """The folder of images, relative to the suite's own; `None` when photos are to be generated."""
    return folder / Path(dataset.root).expanduser() if dataset.root else None


def resolve_consumer(kind: str, *, accelerator: bool) -> str:
    """What `auto` stands for here. Raises `MissingError` for a model without an accelerator to train it on."""
    if kind == "auto":
        return "model" if accelerator else "emulated"
    if kind == "model" and not accelerator:
        raise MissingError("consumer.kind: model needs a CUDA device, and there is none; `auto` emulates one instead")
    return kind


def _describe(files: int, classes: int, complete: bool, root: str) -> str:
    sampled = "" if complete else " (a sample of more)"
    return f"{files:,} images of {classes:,} class{'es' if classes > 1 else ''} in {root}{sampled}"
