"""An exception is explained by the objects it came from: what cannot be pickled, and the samples that clash."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from loaderbench.runner.clues import clue_of


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


def pickling_error(value: Any) -> BaseException:
    with pytest.raises((pickle.PicklingError, TypeError, AttributeError)) as raised:
        pickle.dumps(value)
    return raised.value


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
    assert clue_of(pickling_error(dataset), DataLoader(dataset)) == told
    assert clue_of(pickling_error(dataset), dataset) == told


def test_an_open_file_and_a_local_collate_function_are_named(tmp_path: Path) -> None:
    with (tmp_path / "a").open("w") as file:
        dataset = Samples(1, file=file)
        assert clue_of(pickling_error(dataset), dataset) == "dataset.file (TextIOWrapper) cannot be pickled"
    collate = lambda samples: samples  # noqa: E731
    loader = DataLoader(Samples(1), collate_fn=collate)
    assert clue_of(pickling_error(collate), loader) == "collate_fn (function) cannot be pickled"


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        ((torch.zeros(3, 4), torch.zeros(3, 5)), "sample 0 is Tensor[3, 4], sample 1 is Tensor[3, 5]"),
        (((torch.zeros(1), 0), (torch.zeros(1), 0), None), "sample 0 is (Tensor[1], int), sample 2 is NoneType"),
        (({"x": object()}, {"x": object()}), "sample 0 is {x: object}"),
    ],
)
def test_samples_that_do_not_fit_are_told_with_index_and_shape(samples: tuple[Any, ...], told: str) -> None:
    with pytest.raises((RuntimeError, TypeError)) as raised:
        default_collate(list(samples))
    assert clue_of(raised.value, DataLoader(Samples(*samples))) == told


def test_a_stream_is_looked_at_from_its_beginning() -> None:
    error = RuntimeError("stack expects each tensor to be equal size")
    assert clue_of(error, DataLoader(Stream())) == "sample 0 is Tensor[2], sample 1 is Tensor[3]"


def test_of_other_errors_and_of_objects_that_refuse_nothing_is_said() -> None:
    assert clue_of(ValueError("planted"), Samples(1)) == ""
    assert clue_of(TypeError("cannot pickle '_io.TextIOWrapper' object"), None) == ""
    assert clue_of(RuntimeError("stack expects each tensor to be equal size"), Samples()) == ""
