"""The EXIF orientation of an image, for transforms that turn an image by it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from PIL import Image

_TAG = 0x0112


def orientation_of(image: Any) -> int:
    """From 2 to 8 for a PIL image that is not upright; 0 for others, and for damaged EXIF data."""
    with suppress(Exception):
        found = image.getexif().get(_TAG)
        return found if found in range(2, 9) else 0
    return 0


def exif_of(orientation: int) -> bytes:
    """EXIF data with nothing but an orientation; empty for 0."""
    if not orientation:
        return b""
    exif = Image.Exif()
    exif[_TAG] = orientation
    return exif.tobytes()
