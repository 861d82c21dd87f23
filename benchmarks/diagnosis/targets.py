"""What the suites of `sweeps.py` name as their targets: datasets of the other families, by a name and arguments."""

from __future__ import annotations

from typing import Any

from PIL import Image
from torchvision.datasets import ImageFolder
from torchvision.transforms.functional import to_pil_image

from benchmarks.diagnosis import lock_data, opaque_data, storage_data, stragglers, transport_data
from benchmarks.diagnosis.data import photo_paths, presized_photos, uneven_files
from benchmarks.diagnosis.decoding import V1
from benchmarks.diagnosis.image_data import Photos


def opaque(kind: str, ms: float = 2.0) -> Any:
    return getattr(opaque_data, kind)(ms)


def photos(decode: str = "pillow") -> Any:
    return Photos(photo_paths(), decode)


def stream(kind: str, ms: float = 2.0) -> Any:
    return opaque_data.Stream(opaque(kind, ms))


def latency(ms: float) -> Any:
    return ImageFolder(str(presized_photos()), V1, loader=storage_data.SlowLoader(ms / 1e3, 0.0))


def shared_device(mb_per_s: float) -> Any:
    return storage_data.SharedDevice(uneven_files(), mb_per_s * 1e6)


def locked(held: bool = True, ms: float = 2.0) -> Any:
    return lock_data.Locked(ms, held)


def sleepy(slow_s: float = 0.3) -> Any:
    return stragglers.Sleepy(0.5, slow_s)


def tiny() -> Any:
    return transport_data.InMemory()


def allocating(kept: bool = False) -> Any:
    return transport_data.Allocating(kept=kept)


def small_crop(image: Any) -> Any:
    """A transform that costs little beside decoding."""
    return V1(image if isinstance(image, Image.Image) else to_pil_image(image[:, :96, :96]))
