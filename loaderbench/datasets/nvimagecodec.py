"""The decoder `nvimagecodec`: whether its library is installed, and when it decodes only the region of a crop."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

INSTALL = "uv pip install 'nvidia-nvimgcodec-cu13[all]'"
DECODER, DRAWS_FIRST = "nvimagecodec", "imagenet_train_region"
_PACKAGES = ("nvidia-nvimgcodec-cu13", "nvidia-nvimgcodec-cu12")
_OLDEST = (0, 9)  # older versions cannot decode without a CUDA driver


def is_installed() -> bool:
    """Whether a version that decodes without a GPU is installed, without importing it."""
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            numbers = re.match(r"(\d+)\.(\d+)", version(package))
            if numbers and tuple(map(int, numbers.groups())) >= _OLDEST:
                return True
    return False


def only_regions(decoder: str, transform: str, image_cache: str | None) -> bool:
    """Whether files are only opened, so the transform decodes the region of its crop. A cache holds complete images."""
    return (decoder, transform, image_cache) == (DECODER, DRAWS_FIRST, None)
