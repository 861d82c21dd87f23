"""A map-style dataset over image files, with the attributes that `torchvision.datasets.DatasetFolder` has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.utils.data import Dataset


class BadImageError(Exception):
    """An image that cannot be decoded; the message begins with its path."""


class ImageSamples(Dataset[tuple[Any, int]]):
    """Decodes and transforms on access. `loader` and `transform` are its stages, by torchvision's names."""

    def __init__(
        self, samples: Sequence[tuple[str, int]], loader: Callable[[str], Any], transform: Callable[[Any], Any]
    ) -> None:
        self.samples = samples
        self.loader = loader
        self.transform = transform

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        path, label = self.samples[index]
        try:
            image = self.loader(path)
        except Exception as error:
            raise BadImageError(f"{path}: {type(error).__name__}: {error}") from error
        return self.transform(image), label
