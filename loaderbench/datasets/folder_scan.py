"""The files of a folder that `torchvision.datasets.ImageFolder` reads, without torch and without listing it all.

A folder of a million images answers in the time of the sample asked for: directories are read lazily and left as soon
as a class has given its part.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from loaderbench.errors import MissingError

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")  # torchvision's


@dataclass(frozen=True)
class ImageFiles:
    """Sampled files with their labels, sorted as `ImageFolder` sorts; `complete` when no file was left out."""

    root: Path
    classes: tuple[str, ...]
    samples: tuple[tuple[str, int], ...]
    complete: bool


def scan_image_folder(root: Path, at_most: int | None = None) -> ImageFiles:
    """Find the images under `root`, at most so many, spread evenly over the classes.

    A root without class folders that holds images itself is read as one class. Raises `MissingError`, in one line,
    where there is no folder or no image.
    """
    classes = _class_folders(root)
    taken, complete = _spread(root, classes, at_most) if classes else ([], True)
    if not taken:  # not ImageFolder's layout: images beside each other in one folder
        classes = ["."]
        taken, complete = _spread(root, classes, at_most)
    if not taken:
        raise MissingError(f"{root}: no images found ({' '.join(IMAGE_SUFFIXES)}); expected root/class/name.jpg")
    labels = {name: label for label, name in enumerate(classes)}
    samples = sorted((path, labels[name]) for name, path in taken)
    samples.sort(key=lambda sample: sample[1])
    return ImageFiles(root, tuple(classes), tuple(samples), complete)


def _class_folders(root: Path) -> list[str]:
    try:
        with os.scandir(root) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())
    except FileNotFoundError:
        raise MissingError(f"{root}: no such folder") from None
    except NotADirectoryError:
        raise MissingError(f"{root}: is a file; expected the folder that holds the class folders") from None
    except (OSError, ValueError) as error:
        raise MissingError(f"{root}: cannot read: {getattr(error, 'strerror', None) or error}") from None


def _spread(root: Path, classes: list[str], at_most: int | None) -> tuple[list[tuple[str, str]], bool]:
    """Take the same number from each class, and more from the large ones while the small ones fall short."""
    quota = None if at_most is None else -(-at_most // len(classes))
    while True:
        taken, cut_short = _take(root, classes, quota)
        if quota is None or at_most is None or len(taken) >= at_most or not cut_short:
            break
        quota *= 2
    if at_most is None or len(taken) <= at_most:
        return taken, not cut_short
    step = len(taken) / at_most
    return [taken[int(index * step)] for index in range(at_most)], False


def _take(root: Path, classes: list[str], quota: int | None) -> tuple[list[tuple[str, str]], bool]:
    taken: list[tuple[str, str]] = []
    cut_short = False
    for name in classes:
        files = _walk(os.path.normpath(root / name))
        taken += [(name, path) for path in islice(files, quota)]
        cut_short = cut_short or (quota is not None and next(files, None) is not None)
    return taken, cut_short


def _kind_of(entry: os.DirEntry[str]) -> tuple[bool, bool]:
    """Whether it is a file, and whether it is a folder; neither for a circular or unreadable link."""
    try:
        return entry.is_file(), entry.is_dir()
    except OSError:
        return False, False


def _walk(folder: str) -> Iterator[str]:
    """Yield the images below a folder in the order the disk gives them, one directory entry at a time."""
    below: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                is_file, is_folder = _kind_of(entry)
                if entry.name.lower().endswith(IMAGE_SUFFIXES) and is_file:
                    yield entry.path
                elif is_folder:
                    below.append(entry.path)
    except OSError:
        return  # what can be read is measured; `ImageFolder` passes over such folders too
    for path in sorted(below):
        yield from _walk(path)
