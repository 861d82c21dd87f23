"""What a seed draws, by real loaders: samples and random transforms are the same with any number of workers."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

from loaderbench.loaders.seeded import Draw, SeededSamples, mixed
from loaderbench.loaders.torch_loader import build_loader

LENGTH, BATCH = 12, 4


class Noisy(Dataset[torch.Tensor]):
    """Index, and a random number of each kind."""

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([float(index), float(torch.rand(())), random.random(), float(np.random.rand())])


def drawn(workers: int, *, seed: int = 7, epochs: int = 2, deterministic: bool = True) -> torch.Tensor:
    source = SeededSamples(Noisy(), seed) if deterministic else Noisy()
    batches = build_loader(source, {"batch_size": BATCH, "num_workers": workers, "shuffle": True}, seed=seed)
    loader: Any = batches.iterable
    iterator: Iterator[Any] = iter(loader)
    try:
        return torch.cat(list(islice(iterator, epochs * LENGTH // BATCH)))
    finally:
        batches.close(iterator)


@pytest.mark.parametrize("workers", [1, 2])
def test_samples_do_not_depend_on_the_number_of_workers(workers: int) -> None:
    assert torch.equal(drawn(workers), drawn(0))


def test_without_it_they_do() -> None:
    alone, by_two = drawn(0, deterministic=False), drawn(2, deterministic=False)
    assert torch.equal(alone[:, 0], by_two[:, 0]), "the sampler has its own seed"
    assert not torch.equal(alone[:, 1:], by_two[:, 1:])


def test_a_sample_is_drawn_differently_in_each_epoch_and_by_another_seed() -> None:
    found = drawn(2)
    first, second = (found[part][found[part, 0].argsort()] for part in (slice(None, LENGTH), slice(LENGTH, None)))
    assert torch.equal(first[:, 0], second[:, 0])
    assert not bool((first[:, 1:] == second[:, 1:]).any())
    assert not bool((drawn(2, seed=8)[:, 1:] == found[:, 1:]).any())


def test_draws_near_each_other_are_seeded_far_apart() -> None:
    bits = [bin(mixed(seed, number) ^ mixed(seed, number + 1)).count("1") for seed in range(8) for number in range(200)]
    assert 30 < sum(bits) / len(bits) < 34
    assert len({mixed(seed, number) for seed in range(50) for number in range(50)}) == 2_500


def test_a_draw_is_an_index_that_keeps_its_number_on_its_way_to_a_worker() -> None:
    sent = pickle.loads(pickle.dumps(Draw(3, 41)))
    assert (sent, sent.number, [10, 11, 12, 13][sent]) == (3, 41, 13)
