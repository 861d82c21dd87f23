"""A loader that the user drops is gone at once, with its workers, and results still say what it was."""

from __future__ import annotations

import gc
import multiprocessing
import weakref
from typing import Any

import pytest
import torch
from listed import Iterate, Listed, NewRecorder, used
from loops import trial_of
from torch.utils.data import DataLoader

from loaderbench import Profiler

pytestmark = pytest.mark.usefixtures("without_collector")
WORKERS = pytest.mark.parametrize("workers", [0, 2])


@WORKERS
def test_a_profiled_loader_is_freed_with_its_dataset_and_its_workers(workers: int) -> None:
    with Profiler("train", trace=True) as prof:
        gone = used(prof.iter, workers)
        assert [one() for one in gone] == [None, None]
        assert multiprocessing.active_children() == []
        described(prof.result, workers)
    described(prof.result, workers)


@WORKERS
def test_so_is_the_loader_of_a_script(new_recorder: NewRecorder, workers: int) -> None:
    script = new_recorder()
    gone = used(script.epoch, workers)
    assert [one() for one in gone] == [None, None]
    assert multiprocessing.active_children() == []
    (recorded,) = script._recorded
    script.finish()
    measured = script._recording_of(recorded, has_ended=True).measured
    assert measured.dataset.description.endswith("Listed, 64 samples")


def described(run: Any, workers: int) -> None:
    trial = trial_of(run)
    assert run.dataset.description == "Listed, 64 samples"
    assert trial.config["num_workers"] == workers
    assert trial.samples_per_epoch == 64
    assert trial.dataset_traits["random_state"] == "draws: Random"
    assert trial.sample_times is not None
    assert {slow.path for slow in trial.sample_times.slowest} <= {f"/photos/{number}.jpg" for number in range(64)}


def test_a_loop_that_is_left_early_ends_its_workers(new_recorder: NewRecorder) -> None:
    script = new_recorder()
    for _ in script.epoch(DataLoader(Listed(), batch_size=4, num_workers=2)):
        break
    assert multiprocessing.active_children() == []


class Trainer:
    """Its dataset refers to it, and it to the loader."""

    def __init__(self, workers: int) -> None:
        dataset = Listed()
        dataset.transform = self.changed  # type: ignore[attr-defined]
        persistent = workers > 0
        self.loader = DataLoader(dataset, 4, num_workers=workers, persistent_workers=persistent, collate_fn=self.joined)

    def changed(self, sample: torch.Tensor) -> torch.Tensor:
        return sample

    def joined(self, samples: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack(samples)


def trained(iterate: Iterate, workers: int) -> weakref.ref[Any]:
    trainer = Trainer(workers)
    for _ in range(2):
        for _ in iterate(trainer.loader):
            pass
    return weakref.ref(trainer)


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])  # torch waits 5 s for it
def test_a_trainer_that_its_dataset_refers_to_is_freed(new_recorder: NewRecorder, workers: int) -> None:
    script = new_recorder()
    gone = trained(script.epoch, workers)
    gc.collect()  # it is a cycle of its own
    assert gone() is None
    assert multiprocessing.active_children() == []


class Repeating(DataLoader[torch.Tensor]):
    """Keeps one iterator for all epochs, as timm's `MultiEpochsDataLoader` does."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.batches: Any = None

    def epoch(self, iterate: Iterate) -> None:
        self.batches = self.batches or iter(iterate(self))
        for _ in range(3):
            next(self.batches)


def test_a_loader_that_keeps_its_own_iterator_is_freed(new_recorder: NewRecorder) -> None:
    loader = Repeating(Listed(), batch_size=4, num_workers=2)
    loader.epoch(new_recorder().epoch)
    gone = weakref.ref(loader)
    del loader
    assert gone() is None
    assert multiprocessing.active_children() == []


def test_a_loader_of_a_function_that_continues_is_freed(new_recorder: NewRecorder) -> None:
    """Its variables are looked at, for the loader's name."""
    script = new_recorder()
    model = torch.nn.Linear(2, 2)
    loader = DataLoader(Listed(), batch_size=4)
    for batch in script.epoch(loader):
        assert len(batch) == 4
    gone = [weakref.ref(loader), weakref.ref(model), weakref.ref(batch)]
    del loader, model, batch
    assert [one() for one in gone] == [None] * 3
