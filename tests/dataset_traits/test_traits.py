"""What is seen in a dataset without calling it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torchvision import transforms
from torchvision.datasets import FakeData, ImageFolder
from torchvision.transforms import v2

from loaderbench.dataset_traits import traits_of
from loaderbench.dataset_traits.traits import LONG


def test_generators_and_long_lists_of_a_dataset_are_seen() -> None:
    class Dataset:
        def __init__(self) -> None:
            self.rng = np.random.default_rng(0)
            self.samples = [object()] * LONG

    assert traits_of(Dataset()) == {"random_state": "rng: Generator", "object_list": "samples: 100,000 objects"}
    assert traits_of(object()) == {}


@pytest.mark.parametrize(
    ("expected", "transform"),
    [
        ("transforms_v1 float_samples", transforms.Compose([transforms.CenterCrop(8), transforms.ToTensor()])),
        ("transforms_v1 float_samples", transforms.RandomApply([transforms.Compose([transforms.ToTensor()])])),
        ("transforms_v2 float_samples", v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32)])),
        ("transforms_v2 float_samples", v2.RandomApply([v2.ToDtype(torch.float32)])),
        ("transforms_v2 uint8_samples", v2.Compose([v2.ToImage(), v2.ToDtype(torch.uint8)])),
        ("transforms_v1", transforms.Compose([transforms.PILToTensor(), transforms.Lambda(abs)])),
        ("transforms_v1", transforms.Compose([transforms.PILToTensor(), abs])),
        ("", abs),
        ("", None),
    ],
)
def test_transforms_of_torchvision_are_seen(transform: Any, expected: str) -> None:
    class Other:
        def __init__(self) -> None:
            self.augment = transform

    folder = FakeData(transform=transform)
    assert traits_of(folder).keys() == set(expected.split())
    assert traits_of(Other()).keys() == set(expected.split()) - {"uint8_samples"}


def test_decoding_with_pillow_is_seen(photos: Path) -> None:
    assert traits_of(ImageFolder(photos)) == {"pillow": "default_loader"}
    assert traits_of(ImageFolder(photos, loader=lambda path: path)) == {}


def test_a_stream_of_samples_and_a_finished_loader_are_seen() -> None:
    class Stream(torch.utils.data.IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(2))

    assert traits_of(Stream()) == {"stream": "Stream", "undivided": "Stream"}
    finished = torch.utils.data.DataLoader(Stream())
    assert traits_of(finished) == {"stream": "Stream", "undivided": "Stream", "loader": "DataLoader"}
