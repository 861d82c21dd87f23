"""The files and the transform of a dataset, for loaders that decode by themselves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from loaderbench.formats import StoredCopy


def copy_in(source: Any, loader: str, name: str) -> StoredCopy:
    """The copy of a dataset's files in the format of a loader.

    Raises `TypeError` if the dataset has no copy, or one in another format.
    """
    copy = getattr(source, "copy", None)
    if isinstance(copy, StoredCopy) and copy.about.format == name:
        return copy
    what = f"a copy as {copy.about.format}" if isinstance(copy, StoredCopy) else type(source).__name__
    raise TypeError(f"loader {loader} reads the {name} copy of an image folder, which a run writes; got {what}")


class ImageFiles(NamedTuple):
    """Files with their labels, and a transform named and defined as in torchvision."""

    samples: Sequence[tuple[str, int]]
    transform: str
    normalizes: bool


def image_files(source: Any, loader: str, transforms: Collection[str]) -> ImageFiles:
    """The files and transform of an image dataset. `transforms` are those that the loader implements.

    Raises `TypeError` for any other transform, and for a dataset that lists no files.
    """
    recipe, samples = getattr(source, "recipe", None), getattr(source, "samples", None)
    if recipe is None or samples is None:
        what = type(source).__name__
        raise TypeError(
            f"loader {loader} decodes files by itself: it needs an image folder with a named transform, got {what}"
        )
    if recipe.name not in transforms:
        named = " or ".join(sorted(transforms))
        raise TypeError(f"loader {loader} does not support transform: {recipe.name}; use {named}")
    return ImageFiles(samples, *recipe)
