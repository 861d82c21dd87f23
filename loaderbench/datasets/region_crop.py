"""A random crop that precedes the resize, which lets an image decode only that region."""

from __future__ import annotations

from typing import Any

import torch
from PIL import Image
from torchvision.transforms import RandomResizedCrop
from torchvision.transforms.v2 import functional


class RegionResizedCrop(RandomResizedCrop):  # type: ignore[misc]
    """torchvision's `RandomResizedCrop`, for tensors and for the result of `open_jpeg`.

    An image needs a `shape` of (3, height, width), and `image[:, rows, columns]` must return a region as a uint8
    tensor. Resizing works as in transforms v2.
    """

    def forward(self, image: Any) -> torch.Tensor:
        """Return the crop, uint8, shape (3, height, width) of `size`. Raises `TypeError` for anything else."""
        if isinstance(image, Image.Image):
            image = functional.pil_to_tensor(image.convert("RGB"))
        shape = tuple(getattr(image, "shape", ()))
        if len(shape) != 3 or shape[0] != 3:
            raise TypeError(f"RegionResizedCrop expects images with three channels, got {type(image).__name__}")
        sides = torch.empty(shape, device="meta")
        top, left, height, width = self.get_params(sides, list(self.scale), list(self.ratio))
        region = image[:, top : top + height, left : left + width]
        resized: torch.Tensor = functional.resize(region, list(self.size), antialias=True)
        return resized
