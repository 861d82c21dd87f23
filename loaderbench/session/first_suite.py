"""Generates a first suite for a folder of images: values that fit folder and machine, with reasons as comments."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from PIL import Image

from loaderbench import host_memory
from loaderbench.datasets.folder_scan import ImageFiles, scan_image_folder
from loaderbench.records.words import count
from loaderbench.report.numbers import number

SAMPLE = 20_000  # maximum number of files that a run reads of a larger folder
_INSPECTED = 64  # files whose header is read
_BATCHES, _SMALL_BATCHES = (32, 128), (8, 16)  # the small sizes are for folders too small for the usual ones
JPEG_SUFFIXES = {".jpg", ".jpeg"}
TORCHVISION_SUFFIXES = JPEG_SUFFIXES | {".png", ".webp"}
"""What `decoder: torchvision` reads."""
_MIN_BATCHES = 4  # minimum number of batches of the larger size that the folder must fill


@dataclass(frozen=True)
class Folder:
    """Summary of an image folder. Sizes are medians over the inspected files; `complete` means all files were listed.

    `root` is `None` for synthetic photos that a run generates.
    """

    root: Path | None
    files: int
    classes: int
    complete: bool
    suffixes: tuple[str, ...]
    bytes_per_file: float
    megapixels: float | None

    @property
    def total_bytes(self) -> float:
        """Total size of the listed files; a lower bound for the folder."""
        return self.files * self.bytes_per_file


GENERATED = Folder(None, 512, 8, True, (".jpg",), 110e3, 0.18)
"""The synthetic photos that `dataset.generate` makes by default."""


def look_at(root: Path) -> Folder:
    """Inspect a folder and the headers of some of its files. Raises `MissingError` if it holds no images."""
    found = scan_image_folder(root, SAMPLE)
    inspected = _inspected(found)
    sizes = [Path(path).stat().st_size for path in inspected]
    pixels = [size for path in inspected if (size := _megapixels(path)) is not None]
    suffixes = Counter(Path(path).suffix.lower() for path, _ in found.samples)
    return Folder(
        root,
        len(found.samples),
        len(found.classes),
        found.complete,
        tuple(suffix for suffix, _ in suffixes.most_common(3)),
        median(sizes),
        median(pixels) if pixels else None,
    )


def suite_text(folder: Folder, file: Path, *, gpus: int, available_bytes: int | None = None) -> str:
    """The suite as YAML text, with `root` relative to the folder of `file`."""
    free = (host_memory.available_bytes() or 0) if available_bytes is None else available_bytes
    cold = folder.total_bytes > free / 2
    eats = "a training step on the GPU" if gpus else "an emulated GPU: none was found"
    why_cold = "the files exceed half of free memory: training reads them from disk"
    why_warm = "the files fit in memory, as after the first epoch"
    cache = f"cold                 # {why_cold}" if cold else f"warm                 # {why_warm}"
    return f"""\
# Made by `loaderbench init` for {_described(folder)}.
#   loaderbench check {file.name}      print the plan
#   loaderbench run {file.name}        measure, diagnose, try fixes, write the report
name: {_quoted(name_of(folder.root))}

dataset:
  kind: image_folder
  root: {_root(folder, file)}
  sample: {SAMPLE}               # maximum number of files to use
  decoder: pillow{_decoders(folder)}
  transform: imagenet_train   # your own: package.module:callable

loader:                       # fixed DataLoader arguments
  shuffle: true
  drop_last: true

sweep:                        # axes: any DataLoader argument or dataset option
  batch_size: {_batches(folder.files)}{_why_batches(folder.files)}
  num_workers: auto           # several counts that fit the available CPUs
{_pinning(gpus)}
consumer:
  kind: auto                  # {eats}
  # accelerator: a100         # emulates this GPU at its published training rate (docs/reference/training-rates.md)
  # demand: 1000              # or your own target in samples/s; 1,000 where neither is set
  model: resnet50             # for the training step, and for the rate of `accelerator`

measure:
  rounds: 3                   # repeats per configuration; a winner needs at least 3
  seconds: 1.5                # minimum steady state per trial
  cache: {cache}
"""


def name_of(root: Path | None) -> str:
    """A name for the suite and its file, derived from the folder's name."""
    name = root.resolve().name if root is not None else ""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "images"


def _root(folder: Folder, file: Path) -> str:
    if folder.root is None:
        return "${LOADERBENCH_DATA:-}  # image folder; empty: synthetic JPEGs, generated once and cached"
    root = os.path.relpath(folder.root.resolve(), file.resolve().parent)
    return f"{_quoted(root)}    # relative to this file"


def _inspected(found: ImageFiles) -> list[str]:
    step = max(1, len(found.samples) // _INSPECTED)
    return [path for path, _ in found.samples[::step]]


def _megapixels(path: str) -> float | None:
    """Image size from the file's header; `None` if the file is not an image."""
    try:
        with Image.open(path) as image:
            return image.width * image.height / 1e6
    except (OSError, ValueError, Image.DecompressionBombError):
        return None


def _described(folder: Folder) -> str:
    if folder.root is None:
        return "synthetic JPEGs; use `loaderbench init DIR` for your own folder"
    many = f"{'' if folder.complete else 'more than '}{count(folder.files, 'file')}"
    size = f", {folder.megapixels:.2g} megapixels" if folder.megapixels else ""
    kinds = " ".join(folder.suffixes)
    classes = count(folder.classes, "class", "classes")
    return f"{many} of {classes} ({kinds}), {number(folder.bytes_per_file / 1e3, 2)} kB{size} each"


def _decoders(folder: Folder) -> str:
    found = set(folder.suffixes)
    if not found <= TORCHVISION_SUFFIXES:
        return "             # the other decoders do not read all of these files"
    draft = "pillow_draft | " if found & JPEG_SUFFIXES else ""
    return f"             # pillow | {draft}torchvision; compare under sweep: [pillow, torchvision]"


def _batches(files: int) -> str:
    most = files // _MIN_BATCHES
    usual, small = ([size for size in sizes if size <= most] for sizes in (_BATCHES, _SMALL_BATCHES))
    return f"[{', '.join(map(str, usual or small or [max(1, most)]))}]"


def _why_batches(files: int) -> str:
    if files >= max(_BATCHES) * _MIN_BATCHES:
        return ""
    return f"   # small enough for several batches of {count(files, 'file')}"


def _pinning(gpus: int) -> str:
    if gpus:
        return "  pin_memory: [false, true]\n"
    return "# pin_memory: [false, true]   needs a GPU\n"


def _quoted(text: str) -> str:
    """Quote a path as a YAML string. `${` is escaped, because it would start an environment variable."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("${", "${NONE:-$}{")
    return '"' + "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in escaped) + '"'
