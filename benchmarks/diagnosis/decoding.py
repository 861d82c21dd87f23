"""JPEGs that are expensive to decode, with too few, enough and too many workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch.utils.data import DataLoader, RandomSampler
from torchvision import transforms
from torchvision.datasets import ImageFolder
from torchvision.datasets.folder import default_loader
from torchvision.transforms import v2

from benchmarks.diagnosis.data import large_photos, photo_paths, photos, presized_photos
from benchmarks.diagnosis.image_data import Photos, PhotoStream, by_draft, by_torchvision
from benchmarks.diagnosis.opaque_data import ENDLESS
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device

V1 = transforms.Compose([transforms.CenterCrop(96), transforms.ToTensor()])
V2 = v2.Compose([v2.ToImage(), v2.CenterCrop(96), v2.ToDtype(torch.float32, scale=True)])
LOADERS: dict[str, Callable[[str], Any]] = {
    "pillow": default_loader,
    "draft": by_draft,
    "torchvision": by_torchvision,
}


def folder(
    workers: int,
    *,
    root: Callable[[], Path] = photos,
    recipe: Any = V1,
    loader: str = "pillow",
    batch: int = 8,
    blocks: int = 64,
    **more: Any,
) -> Loop:
    """Torchvision's `ImageFolder`, drawn without end. `blocks`: of 16 MB, that Pillow keeps and need not ask for."""
    Image.core.set_blocks_max(blocks)
    recipe = V2 if loader == "torchvision" else recipe
    dataset = ImageFolder(str(root()), recipe, loader=LOADERS[loader])
    sampler = RandomSampler(dataset, replacement=True, num_samples=ENDLESS)
    return Loop(lambda: DataLoader(dataset, batch, sampler=sampler, num_workers=workers, **more), device(1))


def opaque(
    workers: int, *, decode: str = "pillow", stream: bool = False, small: bool = False, context: str | None = None
) -> Loop:
    """A dataset of the user's own, which opens, decodes and crops in one method."""
    paths = sorted(str(path) for path in presized_photos().rglob("*.jpg")) if small else photo_paths()
    dataset = PhotoStream(paths) if stream else Photos(paths, decode)
    return Loop(lambda: DataLoader(dataset, 8, num_workers=workers, multiprocessing_context=context), device(1))


SMALLER: dict[str, dict[str, Any]] = {"presize_offline": {"root": presized_photos}}
CHEAPER = {"jpeg_draft": {"loader": "draft"}, **SMALLER}  # a draft saves nothing at 500 x 375
LARGE = {"root": large_photos, "batch": 2}

SCENARIOS = (
    Scenario(
        "decode_w0",
        "Photos are decoded in the main process, the other core idle.",
        folder,
        {"workers": 0},
        because_of("decode", "workers"),
        {"main_process_loading": {"workers": 2}, "more_workers": {"workers": 2}, **SMALLER},
    ),
    Scenario(
        "decode_w1",
        "One worker decodes all the time, the other core is idle.",
        folder,
        {"workers": 1},
        because_of("decode", "workers"),
        {"more_workers": {"workers": 2}, **SMALLER},
    ),
    Scenario(
        "decode_v2_w2",
        "Two decoding workers fill the two cores.",
        folder,
        {"workers": 2, "recipe": V2},
        because_of("decode", "cpu"),
        {"faster_decoder": {"loader": "torchvision"}, **SMALLER},
    ),
    Scenario(
        "decode_w8",
        "Eight decoding workers on two cores. Where fewer are not faster, `cpu` is true, too.",
        folder,
        {"workers": 8},
        because_of("decode", "oversubscription cpu"),
        {"fewer_workers": {"workers": 2}, **SMALLER},
    ),
    Scenario(
        "decode_large_w0",
        "Photos of 12 megapixels in the main process; Pillow keeps its memory.",
        folder,
        {"workers": 0, **LARGE},
        because_of("decode", "workers"),
        {"main_process_loading": {"workers": 2}, "more_workers": {"workers": 2}, **CHEAPER},
    ),
    Scenario(
        "decode_large_w1",
        "Photos of 12 megapixels in one worker; Pillow keeps its memory.",
        folder,
        {"workers": 1, **LARGE},
        because_of("decode", "workers"),
        {"more_workers": {"workers": 2}, **CHEAPER},
    ),
    Scenario(
        "decode_large_w2",
        "Photos of 12 megapixels in two workers fill both cores; Pillow keeps its memory.",
        folder,
        {"workers": 2, **LARGE},
        because_of("decode", "cpu"),
        CHEAPER,
    ),
    Scenario(
        "decode_opaque_w1",
        "torchvision's decoder inside of one method, in one worker.",
        opaque,
        {"workers": 1, "decode": "torchvision"},
        because_of("decode", "workers"),
        {"more_workers": {"workers": 2}},
    ),
    Scenario(
        "decode_opaque_spawn_w2",
        "Pillow inside of one method, in two spawned workers: both cores are full.",
        opaque,
        {"workers": 2, "context": "spawn"},
        because_of("decode", "cpu"),
        {"presize_offline": {"small": True}},
    ),
    Scenario(
        "decode_stream_w1",
        "A stream of photos in one worker.",
        opaque,
        {"workers": 1, "stream": True},
        because_of("decode", "workers"),
        {"more_workers": {"workers": 2}},
    ),
)
