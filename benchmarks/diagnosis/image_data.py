"""Readers of JPEGs, as users write them: loaders for `ImageFolder`, and datasets that do all in one method."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, get_worker_info
from torchvision.io import ImageReadMode, decode_jpeg, read_file

from benchmarks.diagnosis.opaque_data import ENDLESS


def by_torchvision(path: str) -> torch.Tensor:
    return decode_jpeg(read_file(path), mode=ImageReadMode.RGB)


def by_draft(path: str) -> Image.Image:
    """Lets libjpeg scale while it decodes."""
    with Image.open(path) as image:
        image.draft("RGB", (256, 256))
        return image.convert("RGB")


def _corner(image: Any, index: int) -> tuple[torch.Tensor, int]:
    """A 64-pixel crop: only reading and decoding cost time."""
    crop = (
        image
        if isinstance(image, torch.Tensor)
        else torch.frombuffer(bytearray(image.crop((0, 0, 64, 64)).tobytes()), dtype=torch.uint8)
    )
    return (crop[:, :64, :64].reshape(3, 64, 64) if crop.dim() == 3 else crop.view(3, 64, 64)), index


class Photos(Dataset[Any]):
    """Opens, decodes and crops in one method; `decode` names how."""

    def __init__(self, paths: list[str], decode: str = "pillow") -> None:
        self.paths, self.decode = paths, decode

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Any:
        path = self.paths[index % len(self.paths)]
        if self.decode == "torchvision":
            return _corner(decode_jpeg(read_file(path), mode=ImageReadMode.RGB), index)
        with Image.open(path) as image:
            if self.decode == "draft":
                image.draft("RGB", (256, 256))
            return _corner(image.convert("RGB"), index)


class PhotoStream(IterableDataset[Any]):
    """The same as a stream, which the workers share out."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for index in range(first, ENDLESS, step):
            with Image.open(self.paths[index % len(self.paths)]) as image:
                yield _corner(image.convert("RGB"), index)


def pinned(_worker: int) -> None:
    """A `worker_init_fn` that puts every worker on one and the same core, as a broken launcher does."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def keep_freed_memory(*_: int) -> None:
    """What MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_ do: freed memory is not given back to the kernel."""
    import ctypes

    libc = ctypes.CDLL(None)
    libc.mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD
    libc.mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD
