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
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

from loaderbench.loaders.seeded import Draw, SeededSamples, mixed
from loaderbench.loaders.torch_loader import build_loader
from loaderbench.recorder.inside import path_of
from loaderbench.runner.determinism import seeded

LENGTH, BATCH = 12, 4


class Noisy(Dataset[torch.Tensor]):
    """Index, and a random number of each kind."""

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([float(index), float(torch.rand(())), random.random(), float(np.random.rand())])


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(6))


def drawn(
    workers: int,
    *,
    dataset: Any = None,
    seed: int = 7,
    epochs: int = 2,
    deterministic: bool = True,
    batch_size: int = BATCH,
    **arguments: Any,
) -> torch.Tensor:
    source = seeded(dataset or Noisy(), seed) if deterministic else Noisy()
    asked = {"batch_size": batch_size, "num_workers": workers, "shuffle": True, **arguments}
    batches = build_loader(source, asked, seed=seed)
    loader: Any = batches.iterable
    iterator: Iterator[Any] = iter(loader)
    try:
        return torch.cat(list(islice(iterator, epochs * LENGTH // batch_size)))
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


class InOneCall(Noisy):
    def __getitems__(self, indices: list[int]) -> list[torch.Tensor]:
        assert {type(index) for index in indices} == {int}
        return [self[index] for index in indices]


@pytest.mark.parametrize("dataset", [InOneCall(), Subset(Noisy(), range(LENGTH))], ids=type)
def test_a_dataset_that_makes_batches_in_one_call_does_so_still(dataset: Any) -> None:
    assert torch.equal(drawn(2, dataset=dataset), drawn(0, dataset=dataset))
    assert not torch.equal(drawn(0, dataset=dataset), drawn(0)), "one seed for each batch"


@pytest.mark.slow
def test_workers_that_are_spawned_draw_the_same() -> None:
    assert torch.equal(drawn(1, epochs=1, multiprocessing_context="spawn"), drawn(0, epochs=1))


def test_the_size_of_the_batches_changes_no_draw() -> None:
    assert torch.equal(drawn(1, batch_size=3), drawn(0))


def test_the_generator_of_the_training_step_is_left_as_it_was() -> None:
    before = torch.get_rng_state()
    _ = SeededSamples(Noisy(), 0)[Draw(2, 1)]
    assert torch.equal(torch.get_rng_state(), before)


def test_one_sample_can_be_looked_at_and_everything_else_is_the_dataset_s() -> None:
    class Files(Noisy):
        samples = tuple((f"{index}.jpg", 0) for index in range(LENGTH))

    found = SeededSamples(Subset(Files(), [7, 3]), 0)
    assert float(found[1][0]) == 3, "by an index that no sampler drew"
    assert path_of(found, 1) == "3.jpg"
    assert path_of(SeededSamples(Files(), 0), 1) == "1.jpg"


@pytest.mark.parametrize("source", [DataLoader(Noisy()), Stream(), [1, 2], {"a": 1}, iter([1])], ids=type)
def test_what_chooses_its_samples_itself_stays_as_it_came(source: Any) -> None:
    assert seeded(source, 0) is source


def test_a_map_style_dataset_of_another_library_is_seeded() -> None:
    class Columns:
        def __len__(self) -> int:
            return LENGTH

        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.rand(2)

    assert torch.equal(drawn(2, dataset=Columns()), drawn(0, dataset=Columns()))


def test_draws_near_each_other_are_seeded_far_apart() -> None:
    bits = [bin(mixed(seed, number) ^ mixed(seed, number + 1)).count("1") for seed in range(8) for number in range(200)]
    assert 30 < sum(bits) / len(bits) < 34
    assert len({mixed(seed, number) for seed in range(50) for number in range(50)}) == 2_500


def test_a_draw_is_an_index_that_keeps_its_number_on_its_way_to_a_worker() -> None:
    sent = pickle.loads(pickle.dumps(Draw(3, 41)))
    assert (sent, sent.number, [10, 11, 12, 13][sent]) == (3, 41, 13)
