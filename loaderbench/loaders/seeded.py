"""Samples that a seed alone draws: a draw has a seed of its own, so it does not matter which worker makes it."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.utils.data import Dataset

_MASK = (1 << 64) - 1


class Draw(int):
    """An index that a sampler drew, with the number of the draw."""

    number: int

    def __new__(cls, index: int, number: int) -> Draw:
        """Keep both."""
        found = super().__new__(cls, index)
        found.number = number
        return found

    def __reduce__(self) -> tuple[type[Draw], tuple[int, int]]:
        """Go to a worker as it is."""
        return Draw, (int(self), self.number)


class NumberedDraws:
    """A sampler that numbers what another draws, over all epochs."""

    def __init__(self, sampler: Iterable[int]) -> None:
        self._sampler = sampler
        self._drawn = 0

    def __iter__(self) -> Iterator[Draw]:
        for index in self._sampler:
            yield Draw(index, self._drawn)
            self._drawn += 1


class SeededSamples(Dataset[Any]):
    """A map-style dataset whose random transforms depend on `seed` and the draw: by `random`, NumPy and torch.

    Each draw seeds the global generators of its process. A generator of the dataset's own is not seeded.
    """

    def __init__(self, dataset: Any, seed: int) -> None:
        self.dataset = dataset
        self._seed = seed

    def __len__(self) -> int:
        return len(self.dataset)

    def numbered(self, sampler: Iterable[int]) -> NumberedDraws:
        """The sampler that such a dataset needs."""
        return NumberedDraws(sampler)

    def __getitem__(self, draw: Draw) -> Any:
        seed_all(mixed(self._seed, draw.number))
        return self.dataset[int(draw)]


def seed_all(seed: int) -> None:
    """Seed what random transforms draw from in this process."""
    random.seed(seed)
    torch.default_generator.manual_seed(seed >> 1)  # of 63 bits
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


def mixed(seed: int, number: int) -> int:
    """64 bits that differ in about half for any two pairs. Source: Steele et al. 2014, SplitMix64's finalizer."""
    found = (seed * 0x9E3779B97F4A7C15 + number + 1) & _MASK
    found = ((found ^ (found >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    found = ((found ^ (found >> 27)) * 0x94D049BB133111EB) & _MASK
    return found ^ (found >> 31)
