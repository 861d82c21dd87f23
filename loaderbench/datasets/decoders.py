"""From a path to a decoded RGB image, by the names a suite uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

DRAFT_SIDE = 256  # a training crop of 224 is cut from about this


def decode_pillow(path: str) -> Image.Image:
    """Decode at full size; what torchvision's `default_loader` does. Returns a PIL image, RGB."""
    with Image.open(path) as image:
        return image.convert("RGB")


def decode_pillow_draft(path: str) -> Image.Image:
    """Let libjpeg scale while it decodes, to no less than 256 pixels a side. Changes pixels; JPEG only."""
    with Image.open(path) as image:
        image.draft("RGB", (DRAFT_SIDE, DRAFT_SIDE))
        return image.convert("RGB")


def decode_torchvision(path: str) -> Any:
    """Decode the file's bytes to a uint8 tensor of shape (3, height, width), without PIL."""
    import torch
    from torchvision.io import ImageReadMode, decode_image, read_file

    image = decode_image(read_file(path), mode=ImageReadMode.RGB)
    return image if image.dtype is torch.uint8 else (image.to(torch.int32) >> 8).to(torch.uint8)  # a PNG of 16 bits


def open_pillow(path: str) -> Image.Image:
    """Open the file and read its header only; pixels are decoded on first use. Returns an image of the file's mode."""
    return Image.open(path)


def decode_simplejpeg(path: str) -> Any:
    """Decode a JPEG by libjpeg-turbo's own interface to a uint8 tensor of shape (3, height, width).

    Needs the package simplejpeg; what it cannot read (other formats, CMYK) goes to Pillow.
    """
    import simplejpeg
    import torch

    try:
        pixels = simplejpeg.decode_jpeg(Path(path).read_bytes(), colorspace="RGB")
    except ValueError:
        pixels = np.array(decode_pillow(path))
    return torch.from_numpy(pixels).permute(2, 0, 1)


DECODERS: Mapping[str, Callable[[str], Any]] = {
    "pillow": decode_pillow,
    "pillow_draft": decode_pillow_draft,
    "pillow_lazy": open_pillow,
    "torchvision": decode_torchvision,
    "simplejpeg": decode_simplejpeg,
}
