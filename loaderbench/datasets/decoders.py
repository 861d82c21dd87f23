"""From a file's path, or its bytes, to a decoded RGB image, by the names a suite uses."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

DRAFT_SIDE = 256  # a training crop of 224 is cut from about this


Encoded = str | bytes
"""A path, or the bytes of a file."""

Decoder = Callable[[Encoded], Any]


def decode_pillow(encoded: Encoded) -> Image.Image:
    """Decode at full size; what torchvision's `default_loader` does. Returns a PIL image, RGB."""
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
    return image if image.dtype is torch.uint8 else (image.to(torch.int32) >> 8).to(torch.uint8)  # a PNG of 16 bits


def open_pillow(encoded: Encoded) -> Image.Image:
    """Open the file and read its header only; pixels are decoded on first use. Returns an image of the file's mode."""
    return Image.open(_file(encoded))


def decode_simplejpeg(encoded: Encoded) -> Any:
    """Decode a JPEG by libjpeg-turbo's own interface to a uint8 tensor of shape (3, height, width).

    Needs the package simplejpeg; what it cannot read (other formats, CMYK) goes to Pillow.
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
    """Decode a JPEG by nvImageCodec on the CPU to a uint8 tensor of shape (3, height, width).

    Needs the package nvidia-nvimgcodec-cu13; what it cannot read (other formats, CMYK) goes to Pillow.
    """
    from loaderbench.datasets.jpeg_regions import open_jpeg

    return open_jpeg(encoded)[:, :, :]


def _file(encoded: Encoded) -> str | io.BytesIO:
    """What Pillow opens."""
    return encoded if isinstance(encoded, str) else io.BytesIO(encoded)


DECODERS: Mapping[str, Decoder] = {
    "pillow": decode_pillow,
    "pillow_draft": decode_pillow_draft,
    "pillow_lazy": open_pillow,
    "torchvision": decode_torchvision,
    "simplejpeg": decode_simplejpeg,
    "nvimagecodec": decode_nvimagecodec,
}
