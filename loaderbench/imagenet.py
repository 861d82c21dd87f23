"""The numbers of torchvision's reference classification training, which all loaders and consumers of images share."""

from __future__ import annotations

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of the channels, of values from 0 to 1."""

CROP, SHORT_SIDE = 224, 256  # pixels
AREA, ASPECT_RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
"""Of random crops: those of torchvision's `RandomResizedCrop`."""
