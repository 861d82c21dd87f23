"""Constants of torchvision's reference classification training, shared by all loaders and consumers of images."""

from __future__ import annotations

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Per channel, for values from 0 to 1."""

CROP, SHORT_SIDE = 224, 256  # pixels
AREA, ASPECT_RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
"""Random crops, as in torchvision's `RandomResizedCrop`."""
