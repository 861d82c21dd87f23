"""Transforms of another library are seen as such."""

from __future__ import annotations

import pytest
from torchvision import transforms
from torchvision.datasets import FakeData

from loaderbench.dataset_traits import traits_of


def test_transforms_of_another_library_are_seen() -> None:
    albumentations = pytest.importorskip("albumentations")

    class Cropped:
        def __init__(self) -> None:
            self.transform = albumentations.Compose([albumentations.CenterCrop(8, 8)])

    assert traits_of(Cropped())["other_transforms"] == "CenterCrop"
    folder = FakeData(transform=transforms.Compose([transforms.PILToTensor(), albumentations.CenterCrop(8, 8)]))
    found = traits_of(folder)
    assert (found["transforms_v1"], found["other_transforms"]) == ("PILToTensor", "CenterCrop")
    assert "uint8_samples" not in found
