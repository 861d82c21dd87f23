"""A random crop for which libjpeg decodes no more pixels than needed."""

from __future__ import annotations

import math
from typing import Any

from PIL import Image
from torchvision.transforms import RandomResizedCrop


class ScaledResizedCrop(RandomResizedCrop):  # type: ignore[misc]
    """torchvision's `RandomResizedCrop`, drawn before the image is decoded.

    The file's header is enough to choose the crop. If the crop would shrink by at least 2, 4 or 8, the JPEG is decoded
    at 1/2, 1/4 or 1/8 of its size. It takes an image opened by `PIL.Image.open`; an already decoded image gets the same
    crop. Source: libjpeg's scaled inverse DCT, through `PIL.Image.Image.draft`.
    """

    def forward(self, image: Any) -> Any:
        """Return the crop, a PIL image in RGB of `size`. Raises `TypeError` for anything else."""
        if not isinstance(image, Image.Image):
            raise TypeError(f"ScaledResizedCrop expects PIL images (decoder: pillow_lazy), got {type(image).__name__}")
        top, left, height, width = self.get_params(image, list(self.scale), list(self.ratio))
        full_width, full_height = image.size
        needs_height, needs_width = self.size
        needed = (math.ceil(full_width * needs_width / width), math.ceil(full_height * needs_height / height))
        image.draft("RGB", needed)
        across, down = image.size[0] / full_width, image.size[1] / full_height
        box = (left * across, top * down, (left + width) * across, (top + height) * down)
        decoded = image if image.mode == "RGB" else image.convert("RGB")
        return decoded.resize((needs_width, needs_height), Image.Resampling.BILINEAR, box=box)
