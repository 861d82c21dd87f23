"""List the files that `torchvision.datasets.ImageFolder` would read, without torch and without a complete listing.

The time depends on the requested sample, not on the size of the folder. Directories are read lazily, and each scan
stops when its class has supplied its share.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from loaderbench.errors import MissingError

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")  # torchvision's


@dataclass(frozen=True)
class ImageFiles:
    """Sampled files with their labels, in the order of `ImageFolder`. `complete` if no file was left out."""

    root: Path
    classes: tuple[str, ...]
    samples: tuple[tuple[str, int], ...]
    complete: bool


def scan_image_folder(root: Path, at_most: int | None = None) -> ImageFiles:
    """Find at most `at_most` images under `root`, spread evenly over the classes.

    A root that has no class folders but contains images is read as one class. Raises `MissingError` with a one-line
    message if the folder does not exist or has no image.
    """
    classes = _class_folders(root)
    taken, complete = _spread(root, classes, at_most) if classes else ([], True)
    if not taken:  # not ImageFolder's layout: all images in one folder
        classes = ["."]
        taken, complete = _spread(root, classes, at_most)
    if not taken:
        closed = [name for name in _class_folders(root) if not os.access(root / name, os.R_OK | os.X_OK)]
        why = f"; no permission to read {closed[0]}" if closed else ""
        raise MissingError(f"{root}: no images found ({' '.join(IMAGE_SUFFIXES)}); expected root/class/name.jpg{why}")
    labels = {name: label for label, name in enumerate(classes)}
    samples = sorted((path, labels[name]) for name, path in taken)
    samples.sort(key=lambda sample: sample[1])
    return ImageFiles(root, tuple(classes), tuple(samples), complete)


def _class_folders(root: Path) -> list[str]:
    try:
        with os.scandir(root) as entries:
            return sorted(entry.name for entry in entries if _kind_of(entry)[1])
    except FileNotFoundError:
        raise MissingError(f"{root}: no such folder") from None
    except NotADirectoryError:
        raise MissingError(f"{root}: is a file; expected the folder that holds the class folders") from None
    except (OSError, ValueError) as error:
        raise MissingError(f"{root}: cannot read: {getattr(error, 'strerror', None) or error}") from None


def _spread(root: Path, classes: list[str], at_most: int | None) -> tuple[list[tuple[str, str]], bool]:
    """Take the same number of files from each class, and more from large classes if small ones run out."""
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
    """Whether the entry is a file, and whether it is a folder; neither for a circular or unreadable link."""
    try:
        return entry.is_file(), entry.is_dir()
    except OSError:
        return False, False


def _walk(folder: str) -> Iterator[str]:
    """Yield the images below a folder in directory order, one entry at a time.

    Links are followed, and each folder is listed once, because links may form a cycle.
    """
    waiting, met = [folder], set[tuple[int, int]]()
    while waiting:
        below: list[str] = []
        with suppress(OSError):  # `ImageFolder` skips unreadable folders too
            for entry in _listed_once(waiting.pop(), met):
                is_file, is_folder = _kind_of(entry)
                if entry.name.lower().endswith(IMAGE_SUFFIXES) and is_file:
                    yield entry.path
                elif is_folder:
                    below.append(entry.path)
        waiting += sorted(below, reverse=True)


def _listed_once(folder: str, met: set[tuple[int, int]]) -> Iterator[os.DirEntry[str]]:
    """The entries of a folder; none if the folder was listed before, by another path."""
    found = os.stat(folder)  # noqa: PTH116 - of a million folders
    place = found.st_dev, found.st_ino
    if place not in met:
        met.add(place)
        with os.scandir(folder) as entries:
            yield from entries
