"""Samples that depend only on a seed: each draw has its own seed, so any worker can load it."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.data import Dataset

from loaderbench.ranks import rank_and_ranks

_MASK = (1 << 64) - 1


class Draw(int):
    """An index drawn by a sampler, with the number of the draw."""

    number: int

    def __new__(cls, index: int, number: int) -> Draw:
        """Create an index that knows the number of its draw."""
        found = super().__new__(cls, index)
        found.number = number
        return found

    def __reduce__(self) -> tuple[type[Draw], tuple[int, int]]:
        """Keep the number when pickled for a worker."""
        return Draw, (int(self), self.number)


class NumberedDraws:
    """A sampler that numbers the draws of another sampler over all epochs; no two ranks draw the same number."""

    def __init__(self, sampler: Iterable[int]) -> None:
        self.sampler = sampler
        self._drawn, self._step = rank_and_ranks()

    def __iter__(self) -> Iterator[Draw]:
        for index in self.sampler:
            yield Draw(index, self._drawn)
            self._drawn += self._step


class SeededSamples(Dataset[Any]):
    """A map-style dataset whose random transforms depend only on `seed` and the draw: by `random`, NumPy and torch.

    Each draw seeds the global generators of its process and restores their states afterwards, because without workers
    the training step draws from them, too. Generators stored in the dataset are not seeded. If the dataset makes a
    batch in one call, the first draw seeds the complete batch. Other attributes, such as the list of files, come from
    the dataset.
    """

    def __init__(self, dataset: Any, seed: int) -> None:
        self._samples, self._seed = dataset, seed
        if hasattr(dataset, "__getitems__"):
            self.__getitems__ = self._make_batch

    def __len__(self) -> int:
        return len(self._samples)

    def numbered(self, sampler: Iterable[int]) -> NumberedDraws:
        """The sampler that this dataset needs."""
        return NumberedDraws(sampler)

    def __getitem__(self, draw: int) -> Any:
        with self._seeded_by(draw):
            return self._samples[int(draw)]

    def _make_batch(self, draws: Sequence[int]) -> Any:
        with self._seeded_by(draws[0]):
            return self._samples.__getitems__([int(draw) for draw in draws])

    @contextmanager
    def _seeded_by(self, draw: int) -> Iterator[None]:
        """Seed the generators by a draw. An index without a number, for example to inspect one sample, is draw 0."""
        before = _states()
        seed_all(mixed(self._seed, getattr(draw, "number", 0)))
        try:
            yield
        finally:
            _restore(*before)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_samples":  # pickle asks for these before the dataset is set
            raise AttributeError(name)
        return getattr(self._samples, name)


def _states() -> tuple[Any, Any, Any]:
    numpy = sys.modules.get("numpy")
    return random.getstate(), torch.get_rng_state(), numpy.random.get_state() if numpy else None


def _restore(of_random: Any, of_torch: Any, of_numpy: Any) -> None:
    random.setstate(of_random)
    torch.set_rng_state(of_torch)
    if of_numpy is not None:
        sys.modules["numpy"].random.set_state(of_numpy)


def seed_all(seed: int) -> None:
    """Seed the global generators of random transforms in this process."""
    random.seed(seed)
    torch.default_generator.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


def mixed(seed: int, number: int) -> int:
    """Hash to 64 bits, about half of which differ between any two pairs. Source: SplitMix64, Steele et al. 2014."""
    found = (seed * 0x9E3779B97F4A7C15 + number + 1) & _MASK
    found = ((found ^ (found >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    found = ((found ^ (found >> 27)) * 0x94D049BB133111EB) & _MASK
    return found ^ (found >> 31)
