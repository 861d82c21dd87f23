"""A cache of decoded images in memory shared by all workers: each image is decoded once, not once per epoch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from loaderbench.datasets.orientation import exif_of, orientation_of

MOST_OF_SHARED_MEMORY = 1 / 3  # batches from workers need shared memory too, and filling the cache takes its size twice
_SHM = Path("/dev/shm")


class SharedImages:
    """An image loader that caches all images: called with a path, it returns what `loader` returned.

    The pixels are in one shared tensor, which workers map without copying. Filling the cache takes about as long as
    decoding one epoch. Raises `MemoryError` if the pixels need more than `room_bytes`.
    """

    def __init__(self, samples: Sequence[tuple[str, int]], loader: Callable[[str], Any], *, room_bytes: int) -> None:
        paths = list(dict.fromkeys(path for path, _ in samples))
        pool = ThreadPoolExecutor()
        try:
            found = list(_within(room_bytes, pool.map(lambda path: _pixels(loader(path)), paths)))
        finally:
            pool.shutdown(cancel_futures=True)
        self._as_image = bool(found) and found[0][1]
        sizes = [pixels.size for pixels, *_ in found]
        self._block = torch.empty(sum(sizes), dtype=torch.uint8).share_memory_()  # type: ignore[no-untyped-call]
        self._places: dict[str, tuple[int, int, tuple[int, ...]]] = {}  # begin, EXIF orientation, shape
        begin = 0
        for path, (pixels, _, turned), size in zip(paths, found, sizes, strict=True):
            self._block[begin : begin + size] = torch.from_numpy(pixels.reshape(-1))
            self._places[path] = (begin, turned, pixels.shape)
            begin += size

    def __call__(self, path: str) -> Any:
        """The image of a path: PIL, or a uint8 tensor of shape (3, height, width). Raises `KeyError` if unknown."""
        begin, turned, shape = self._places[path]
        pixels = self._block[begin : begin + int(np.prod(shape))].view(shape)
        if not self._as_image:
            return pixels.permute(2, 0, 1).clone()  # a transform may write into it
        image = Image.fromarray(pixels.numpy())
        if turned:
            image.info["exif"] = exif_of(turned)
        return image


def _pixels(image: Any) -> tuple[np.ndarray[Any, np.dtype[np.uint8]], bool, int]:
    """Return the pixels (height, width, channels), whether it was a PIL image, and its EXIF orientation or 0."""
    if isinstance(image, torch.Tensor):
        return np.ascontiguousarray(image.permute(1, 2, 0).numpy()), False, 0
    return np.array(image.convert("RGB")), True, orientation_of(image)


def _within(room_bytes: int, images: Any) -> Any:
    held = 0
    for image in images:
        held += image[0].nbytes
        if held > room_bytes:
            raise MemoryError(f"the decoded images need more than {room_bytes:,} bytes of shared memory")
        yield image


def room_bytes() -> int:
    """How much shared memory a cache can take: a third of the free memory, or of its file system if that has less."""
    import psutil

    free = psutil.virtual_memory().available
    if hasattr(os, "statvfs") and _SHM.is_dir():
        found = os.statvfs(_SHM)
        free = min(free, found.f_bavail * found.f_frsize)
    return int(free * MOST_OF_SHARED_MEMORY)
