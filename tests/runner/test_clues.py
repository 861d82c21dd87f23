"""An exception is explained by the objects it came from: what cannot be pickled, and the samples that clash."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from loaderbench.diagnosis.failures import classify
from loaderbench.runner.failure_details import clue_of


class Samples(Dataset[Any]):
    def __init__(self, *samples: Any, **attributes: Any) -> None:
        self.samples = samples
        vars(self).update(attributes)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:
        return self.samples[index]


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        yield from (torch.zeros(2), torch.zeros(3))


class Steps:
    def __init__(self, *steps: Any) -> None:
        self.transforms = list(steps)


def kind_of(call: Callable[[], object]) -> str:
    """What an exception is called."""
    with pytest.raises((pickle.PicklingError, TypeError, AttributeError, RuntimeError)) as raised:
        call()
    return classify(f"{type(raised.value).__name__}: {raised.value}").kind


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({"kept": lambda: 1}, "dataset.kept (function) cannot be pickled"),
        ({"transform": Steps(1, lambda: 1)}, "dataset.transform.transforms[1] (function) cannot be pickled"),
        ({"lock": threading.Lock()}, "dataset.lock (lock) cannot be pickled"),
        ({"by_name": {"a": lambda: 1}}, "dataset.by_name['a'] (function) cannot be pickled"),
    ],
)
def test_the_attribute_that_cannot_be_pickled_is_named(attributes: dict[str, Any], told: str) -> None:
    dataset = Samples(1, **attributes)
    kind = kind_of(lambda: pickle.dumps(dataset))
    assert clue_of(kind, DataLoader(dataset)) == clue_of(kind, dataset) == told


def test_an_open_file_and_a_local_collate_function_are_named(tmp_path: Path) -> None:
    with (tmp_path / "a").open("w") as file:
        assert clue_of("not_picklable", Samples(1, file=file)) == "dataset.file (TextIOWrapper) cannot be pickled"
    loader = DataLoader(Samples(1), collate_fn=lambda samples: samples)
    assert clue_of("not_picklable", loader) == "collate_fn (function) cannot be pickled"


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        ((torch.zeros(3, 4), torch.zeros(3, 5)), "sample 0 is Tensor[3, 4], sample 1 is Tensor[3, 5]"),
        (((torch.zeros(1), 0), (torch.zeros(1), 0), None), "sample 0 is (Tensor[1], int), sample 2 is NoneType"),
        (({"x": object()}, {"x": object()}), "sample 0 is {x: object}"),
    ],
)
def test_samples_that_do_not_fit_are_told_with_index_and_shape(samples: tuple[Any, ...], told: str) -> None:
    kind = kind_of(lambda: default_collate(list(samples)))
    assert clue_of(kind, DataLoader(Samples(*samples))) == told


def test_a_stream_is_looked_at_from_its_beginning() -> None:
    assert clue_of("collate", DataLoader(Stream())) == "sample 0 is Tensor[2], sample 1 is Tensor[3]"


def test_batches_of_another_loader_are_not_made_again_and_not_called_samples() -> None:
    made = []

    def batches() -> Any:
        for size in (2, 3):
            made.append(size)
            yield torch.zeros(size)

    assert (clue_of("collate", batches()), made) == ("", [])


def test_a_batch_that_does_not_fit_is_told_in_bytes() -> None:
    loader = DataLoader(Samples((torch.zeros(1 << 18), 1)), batch_size=16)
    assert clue_of("shared_memory_full", loader) == "a batch of 16 takes about 16 MiB of shared memory"


def test_batches_of_unknown_size_are_not_told_in_bytes() -> None:
    loader = DataLoader(Samples(torch.zeros(1 << 18)), batch_sampler=[[0]])
    assert clue_of("shared_memory_full", loader) == ""


def test_of_other_failures_and_of_objects_that_refuse_nothing_is_said() -> None:
    assert clue_of("error", Samples(1)) == ""
    for kind in ("not_picklable", "collate", "shared_memory_full"):
        assert clue_of(kind, None) == ""
