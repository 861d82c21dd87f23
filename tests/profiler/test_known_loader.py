"""Which loader is a new one, which continues an earlier recording, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from listed import Listed, NewRecorder, used
from loops import trial_of
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
)
from torch.utils.data.distributed import DistributedSampler

from loaderbench import Profiler
from loaderbench.profiler.known_loader import KnownLoader
from loaderbench.recorder.inside import path_of
from loaderbench.recorder.own_arguments import own_arguments_of, with_batch_size

pytestmark = pytest.mark.usefixtures("without_collector")


def test_the_next_loader_of_the_same_kind_continues_the_recording() -> None:
    with Profiler("train", trace=True) as prof:
        for _ in range(3):
            used(prof.iter, 2, epochs=1)
    trial = trial_of(prof.result)
    assert trial.epochs is not None
    assert trial.epochs.begun == 3
    assert not [note for note in prof.result.notes if "not recorded" in note]


@pytest.mark.parametrize("batch_sampler", [False, True])
def test_an_epoch_of_a_rank_is_its_share_of_the_dataset(batch_sampler: bool) -> None:
    dataset = Listed()
    share = DistributedSampler(dataset, num_replicas=4, rank=1)
    how = {"batch_sampler": BatchSampler(share, 4, False)} if batch_sampler else {"sampler": share, "batch_size": 4}
    with Profiler("train") as prof:
        list(prof.iter(DataLoader(dataset, **how)))
    assert trial_of(prof.result).samples_per_epoch == len(dataset) / 4


def test_a_sampler_that_gives_lists_does_not_count_samples() -> None:
    dataset = TensorDataset(torch.zeros(16, 2))
    with Profiler("train") as prof:
        list(prof.iter(DataLoader(dataset, batch_size=None, sampler=BatchSampler(RandomSampler(dataset), 4, False))))
    assert trial_of(prof.result).samples_per_epoch == len(dataset)


def test_a_dataset_that_grows_is_the_same_in_a_new_loader() -> None:
    dataset = Listed()
    with Profiler("train") as prof:
        for _ in range(2):
            for _ in prof.iter(DataLoader(dataset, batch_size=4)):
                pass
            dataset.samples *= 2
    assert trial_of(prof.result).epochs.begun == 2
    assert not [note for note in prof.result.notes if "not recorded" in note]


def test_a_loader_of_another_length_takes_the_place_of_one_that_is_gone(new_recorder: NewRecorder) -> None:
    script = new_recorder()
    for length in (64, 32, 16):
        dataset = Listed()
        del dataset.samples[length:]
        loader = DataLoader(dataset, batch_size=4)
        list(script.epoch(loader))
        del loader
    (recorded,) = script._recorded
    assert recorded.profiler._recorder.begun == 3


def test_two_loaders_of_one_length_that_exist_together_stay_apart(new_recorder: NewRecorder) -> None:
    """As a dictionary of loaders for training and validation, made in one line and iterated over in one."""
    script = new_recorder()
    loaders = {phase: DataLoader(Listed(), batch_size=4) for phase in ("train", "val")}
    for phase in ("train", "val", "train", "val"):
        list(script.epoch(loaders[phase]))
    assert [one.profiler._recorder.begun for one in script._recorded] == [2, 2]


def test_a_dropped_loader_has_the_paths_of_its_own_samples() -> None:
    with Profiler("train", trace=True) as prof:
        used(prof.iter, 0)
        other = Listed()
        other.samples = [(f"/other/{number}.jpg", 0) for number in range(64)]
        known = prof._observer.known
        noted = dict(known._paths)
        assert noted
        assert all(path == f"/photos/{number}.jpg" for number, path in noted.items())


def test_a_number_of_workers_from_numpy_is_a_plain_number() -> None:
    with Profiler("train", warmup=0) as prof:
        list(prof.iter(DataLoader(Listed(), 4, num_workers=np.int64(1), prefetch_factor=np.int64(3))))  # type: ignore[arg-type]
    config = prof.result.to_dict()["trials"][0]["config"]
    assert (config["num_workers"], config["prefetch_factor"]) == (1, 3)


@pytest.mark.parametrize("anew", [False, True])
def test_a_loader_that_is_made_for_each_epoch_is_known_as_such(anew: bool) -> None:
    dataset = Listed()
    loader = DataLoader(dataset, batch_size=4)
    with Profiler("train") as prof:
        for _ in range(3):
            for _ in prof.iter(DataLoader(dataset, batch_size=4) if anew else loader):
                pass
    assert ("new_loader" in trial_of(prof.result).dataset_traits) is anew


@pytest.mark.parametrize("kind", [list, tuple])
def test_batches_in_a_list_are_the_same_loader_in_each_epoch(kind: type[Any]) -> None:
    batches = kind(np.zeros((4, 40), np.float32) for _ in range(32))
    with Profiler("train") as prof:
        for _ in range(3):
            for _ in prof.iter(batches):
                pass
    assert "new_loader" not in trial_of(prof.result).dataset_traits


@pytest.mark.parametrize(
    ("shape", "trait"),
    [
        ((3, 32, 32), {"float_samples": "float32"}),
        ((40,), {"no_images": "no tensor of a batch has the shape of images"}),
    ],
)
def test_what_images_a_loop_trains_on_is_known_from_its_batches(shape: tuple[int, ...], trait: dict[str, str]) -> None:
    with Profiler("train") as prof:
        for _ in prof.iter(DataLoader([np.zeros(shape, np.float32)] * 32, batch_size=4)):
            pass
    assert trial_of(prof.result).dataset_traits == trait


def pairs(samples: list[Any]) -> list[Any]:
    return samples


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, ""),
        ({"shuffle": True, "collate_fn": pairs}, "shuffle=True, collate_fn=pairs"),
        ({"sampler": [3, 1, 2], "drop_last": True, "collate_fn": lambda samples: samples},
         "sampler=sampler, drop_last=True, collate_fn=collate_fn"),
        ({"batch_size": 1, "batch_sampler": [[3, 1], [2]]}, "batch_sampler=batch_sampler"),
        ({"sampler": RandomSampler([1] * 8, num_samples=4)}, "sampler=sampler"),
        ({"collate_fn": pad_sequence, "worker_init_fn": partial(print)}, "collate_fn=pad_sequence"),
        ({"batch_size": None, "sampler": RandomSampler([1] * 8, replacement=True)}, "sampler=sampler"),
    ],
)  # fmt: skip
def test_arguments_that_a_changed_loader_needs_again_are_known_as_code(arguments: dict[str, Any], code: str) -> None:
    loader: DataLoader[Any] = DataLoader(Listed(), **{"batch_size": 4, **arguments})
    assert own_arguments_of(loader) == code
    size = () if loader.batch_size is None else (f"batch_size={loader.batch_size}",)
    assert with_batch_size(loader) == ", ".join((*size, *filter(None, (code,))))


def test_these_arguments_stay_known_when_the_loader_is_freed_before_its_dataset() -> None:
    dataset = Listed()
    loader: DataLoader[Any] = DataLoader(dataset, 4, shuffle=True)
    known = KnownLoader(loader)
    known.note(())
    del loader
    assert known.traits()["own_arguments"] == "shuffle=True"


def test_the_path_of_a_sample_runs_no_code_of_the_dataset() -> None:
    class Lazy:
        asked = 0

        @property
        def files(self) -> list[str]:
            type(self).asked += 1
            return ["a.jpg"]

    listed = Lazy()
    vars(listed)["paths"] = ["b.jpg"]
    assert path_of(listed, 0) == "b.jpg"
    assert path_of(Lazy(), 0) is None
    assert Lazy.asked == 0


def in_turn(script: Any, make: Callable[[str], DataLoader[Any]]) -> list[int]:
    """The epochs of each recording, where one function makes a loader for training and one for validation."""
    for phase in ("train", "val", "train", "val"):
        list(script.epoch(make(phase)))
    return [one.profiler._recorder.begun for one in script._recorded]


def test_loaders_of_two_datasets_that_exist_stay_apart_though_a_function_makes_them(new_recorder: NewRecorder) -> None:
    datasets = {phase: Listed() for phase in ("train", "val")}
    assert in_turn(new_recorder(), lambda phase: DataLoader(datasets[phase], batch_size=4)) == [2, 2]


def test_loaders_of_freed_datasets_stay_apart_with_another_sampler_or_another_size(new_recorder: NewRecorder) -> None:
    assert in_turn(new_recorder(), lambda phase: DataLoader(Listed(), 4, shuffle=phase == "train")) == [2, 2]

    def part_of(phase: str) -> DataLoader[Any]:
        dataset = Listed()
        if phase == "val":
            del dataset.samples[16:]
        return DataLoader(dataset, batch_size=4)

    assert in_turn(new_recorder(), part_of) == [2, 2]


def test_folds_of_a_dataset_continue_each_other(new_recorder: NewRecorder) -> None:
    script, dataset = new_recorder(), Listed()
    for fold in range(3):
        part = Subset(dataset, range(fold, 40 + 2 * fold))
        loader = DataLoader(part, batch_size=4, shuffle=True)
        list(script.epoch(loader))
        del part, loader
    (recorded,) = script._recorded
    assert recorded.profiler._recorder.begun == 3


class CountedStream(IterableDataset[int]):
    """Counts how often its length is asked for."""

    asked = 0

    def __iter__(self) -> Iterator[int]:
        return iter(range(40))

    def __len__(self) -> int:
        self.asked += 1
        return 40


class CountedSampler(SequentialSampler):
    asked = 0

    def __len__(self) -> int:
        self.asked += 1
        return super().__len__()


def test_the_length_of_a_stream_is_known_once_the_loop_asks_for_it_and_never_asked_for_by_us() -> None:
    for asks in (False, True):
        dataset = CountedStream()
        loader = DataLoader(dataset, batch_size=4)
        with Profiler("train", warmup=0) as prof:
            for _ in range(2):
                assert not asks or len(prof.iter(loader)) == 10
                for _ in prof.iter(loader):  # `list` would ask for the length
                    pass
        trial = trial_of(prof.result)
        assert dataset.asked == (2 if asks else 0)
        assert trial.samples_per_epoch == (40 if asks else None)
        assert asks or "did not call len(loader)" in trial.not_measured["samples_per_epoch"]
        assert "40 samples" in prof.result.dataset.description or not asks


def test_the_length_of_a_sampler_of_the_user_is_not_asked_for() -> None:
    dataset = Listed()
    sampler = CountedSampler(dataset)
    with Profiler("train", warmup=0) as prof:
        for _ in prof.iter(DataLoader(dataset, batch_size=4, sampler=sampler)):
            pass
    assert (sampler.asked, trial_of(prof.result).samples) == (0, 60)


def test_shuffling_is_known_without_asking_the_dataset() -> None:
    class OfOneThread(Listed):
        is_open = True

        def __len__(self) -> int:
            assert self.is_open, "asked in another thread"
            return super().__len__()

    loader: DataLoader[Any] = DataLoader(OfOneThread(), 4, shuffle=True)
    OfOneThread.is_open = False
    assert own_arguments_of(loader) == "shuffle=True"
