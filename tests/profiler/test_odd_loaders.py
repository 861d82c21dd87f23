"""A user's own loaders, whose attributes can be anything, and loaders that raise and continue."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from loops import Numbers, trial_of
from torch.utils.data import DataLoader, default_collate

from loaderbench import Profiler

TRACED = pytest.mark.parametrize("trace", [False, True])


class Own:
    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter([torch.zeros(4, 2)] * 30)


class OnlyBatchSampler(Own):
    batch_sampler = (range(4),) * 30


class SizeByMethod(Own):
    def batch_size(self) -> int:
        return 4


class SizeAsText(Own):
    batch_size = "4"


class SizesOfTwo(Own):
    batch_size = np.array([4, 8])


class SizeThatRaises(Own):
    @property
    def batch_size(self) -> int:
        raise RuntimeError("not set up yet")


class DatasetThatRaises(Own):
    @property
    def dataset(self) -> Any:
        raise RuntimeError("not set up yet")


class NamesOfADict(Own):
    def __getattr__(self, name: str) -> Any:
        return {"rate": 1}[name]


class WithoutIter(Own):
    def __iter__(self) -> Any:
        return OnlyNext()


class OnlyNext:
    left = 30

    def __next__(self) -> torch.Tensor:
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return torch.zeros(4, 2)


OF_SIZES = (SizeByMethod, SizeAsText, SizesOfTwo, SizeThatRaises)
ODD = (*OF_SIZES, OnlyBatchSampler, DatasetThatRaises, NamesOfADict, WithoutIter)


@TRACED
@pytest.mark.parametrize("kind", ODD)
def test_odd_attributes_of_a_loader_never_stop_its_loop(kind: type[Any], trace: bool) -> None:
    loader = kind()
    with Profiler(warmup=2, trace=trace) as prof:
        for _ in range(2):
            assert sum(1 for _ in prof.iter(loader)) == 30
    trial = trial_of(prof.result)
    assert (trial.batches, trial.samples) == (57, 57 * 4)


def taken_and_raised(batches: Iterator[Any]) -> tuple[list[int], int]:
    """The first number of each batch, by a loop that skips each batch that raises, and how many did."""
    taken, raised = list[int](), 0
    while True:
        try:
            taken.append(int(next(batches)[0]))
        except StopIteration:
            return taken, raised
        except ValueError:
            raised += 1


class Unreadable(Numbers):
    """Some samples cannot be read."""

    def __getitem__(self, index: int) -> torch.Tensor:
        if index in (9, 30):
            raise ValueError("planted")
        return torch.tensor(index)


@TRACED
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(("steps", "recorded"), [(None, 3), (2, 2)])
def test_a_loop_that_goes_on_after_an_exception_gets_the_other_batches(
    workers: int, trace: bool, steps: int | None, recorded: int
) -> None:
    """With `steps`, the first exception comes when nothing is recorded any more; without, only the second does."""
    loader = DataLoader(Unreadable(), batch_size=2, num_workers=workers)
    usual = taken_and_raised(iter(loader))
    assert usual[1] == 2
    with Profiler(warmup=0, steps=steps, trace=trace) as prof:
        assert taken_and_raised(iter(prof.iter(loader))) == usual
    assert trial_of(prof.result).batches == recorded


class RaisesOnce:
    """An iterator of your own that continues after an exception."""

    def __init__(self) -> None:
        self.made = 0

    def __iter__(self) -> RaisesOnce:
        return self

    def __next__(self) -> torch.Tensor:
        self.made += 1
        if self.made == 4:
            raise ValueError("planted")
        if self.made > 10:
            raise StopIteration
        return torch.tensor([self.made])


@TRACED
def test_an_iterator_of_your_own_continues_after_an_exception(trace: bool) -> None:
    with Profiler(warmup=0, trace=trace) as prof:
        assert taken_and_raised(iter(prof.iter(RaisesOnce()))) == ([1, 2, 3, 5, 6, 7, 8, 9, 10], 1)
    assert trial_of(prof.result).batches == 2


class NotSetUp(DataLoader[torch.Tensor]):
    """A loader in place of torch's, which has none of its attributes."""

    def __init__(self) -> None:
        pass

    def __iter__(self) -> Any:
        return iter([torch.zeros(4, 2)] * 30)


@TRACED
def test_a_data_loader_that_never_calls_torch_is_recorded_as_a_loader_of_your_own(trace: bool) -> None:
    with Profiler(warmup=2, trace=trace) as prof:
        assert sum(1 for _ in prof.iter(NotSetUp())) == 30
    assert (trial_of(prof.result).batches, trial_of(prof.result).samples) == (28, 28 * 4)


def test_a_stage_after_an_exception_is_not_timed() -> None:
    """It would count for a step of the next epoch."""
    with Profiler(warmup=0) as prof:
        batches = iter(prof.iter(DataLoader(Unreadable(), batch_size=2)))
        with suppress(ValueError):
            while True:
                next(batches)
        assert prof.loop_stage("late") is None
        assert int(next(batches)[0]) == 10
        assert prof.loop_stage("late") is None


class Generating(DataLoader[Any]):
    """Its `__iter__` is a generator, as of a loader that moves each batch."""

    def __iter__(self) -> Any:
        for batch in super().__iter__():  # noqa: UP028 - as users write it
            yield batch


def slow_collate(samples: list[Any]) -> Any:
    time.sleep(0.004)
    return default_collate(samples)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_whose_iter_is_a_generator_has_stages_and_workers(workers: int) -> None:
    loader = Generating(Numbers(64), batch_size=4, num_workers=workers, collate_fn=slow_collate)
    with Profiler("train", trace=True) as prof:
        for _ in range(4):
            for _ in prof.iter(loader):
                time.sleep(0.002)
    trial = trial_of(prof.result)
    assert trial.stages is not None
    assert trial.stages["collate"].wall_s > 5e-4
    assert (trial.workers is not None) is (workers > 0)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_that_accelerate_has_prepared_has_stages(workers: int) -> None:
    accelerate = pytest.importorskip("accelerate")
    loader = accelerate.Accelerator(cpu=True).prepare(
        DataLoader(Numbers(64), batch_size=4, num_workers=workers, collate_fn=slow_collate)
    )
    with Profiler("train", trace=True) as prof:
        for _ in range(4):
            for _ in prof.iter(loader):
                pass
    trial = trial_of(prof.result)
    assert trial.stages is not None
    assert trial.stages["collate"].wall_s > 5e-4
