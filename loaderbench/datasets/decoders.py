"""Decoders from a file's path or bytes to an RGB image, by the names that a suite uses."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

DRAFT_SIDE = 256  # a common size for training crops of 224


Encoded = str | bytes
"""A path, or the contents of a file."""

Decoder = Callable[[Encoded], Any]


def decode_pillow(encoded: Encoded) -> Image.Image:
    """Decode at full size, as torchvision's `default_loader` does. Returns an RGB PIL image."""
    with Image.open(_file(encoded)) as image:
        return image.convert("RGB")


def decode_pillow_draft(encoded: Encoded) -> Image.Image:
    """Let libjpeg scale while it decodes, to no less than 256 pixels a side. Changes pixels; JPEG only."""
    with Image.open(_file(encoded)) as image:
        image.draft("RGB", (DRAFT_SIDE, DRAFT_SIDE))
        return image.convert("RGB")


def decode_torchvision(encoded: Encoded) -> Any:
    """Decode the file's bytes to a uint8 tensor of shape (3, height, width), without PIL."""
    import torch
    from torchvision.io import ImageReadMode, decode_image, read_file

    data = read_file(encoded) if isinstance(encoded, str) else torch.frombuffer(bytearray(encoded), dtype=torch.uint8)
    image = decode_image(data, mode=ImageReadMode.RGB)
    return image if image.dtype is torch.uint8 else (image.to(torch.int32) >> 8).to(torch.uint8)  # a 16-bit PNG


def open_pillow(encoded: Encoded) -> Image.Image:
    """Open the file and read only its header; pixels are decoded on first use. Returns an image in the file's mode."""
    return Image.open(_file(encoded))


def decode_simplejpeg(encoded: Encoded) -> Any:
    """Decode a JPEG with libjpeg-turbo's native interface to a uint8 tensor of shape (3, height, width).

    Requires the package simplejpeg. Files that it cannot read (other formats, CMYK) are decoded by Pillow.
    """
    import simplejpeg
    import torch

    data = Path(encoded).read_bytes() if isinstance(encoded, str) else encoded
    try:
        pixels = simplejpeg.decode_jpeg(data, colorspace="RGB")
    except ValueError:
        pixels = np.array(decode_pillow(encoded))
    return torch.from_numpy(pixels).permute(2, 0, 1)


def decode_nvimagecodec(encoded: Encoded) -> Any:
    """Decode a JPEG with nvImageCodec on the CPU to a uint8 tensor of shape (3, height, width).

    Requires the package nvidia-nvimgcodec-cu13. Files that it cannot read (other formats, CMYK) are decoded by Pillow.
    """
    from loaderbench.datasets.jpeg_regions import open_jpeg

    return open_jpeg(encoded)[:, :, :]


def _file(encoded: Encoded) -> str | io.BytesIO:
    """The path, or the bytes as a file object, for `Image.open`."""
    return encoded if isinstance(encoded, str) else io.BytesIO(encoded)


DECODERS: Mapping[str, Decoder] = {
    "pillow": decode_pillow,
    "pillow_draft": decode_pillow_draft,
    "pillow_lazy": open_pillow,
    "torchvision": decode_torchvision,
    "simplejpeg": decode_simplejpeg,
    "nvimagecodec": decode_nvimagecodec,
}
