"""A loader that the user drops is gone at once, with its workers, and results still say what it was."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
import random
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from loops import trial_of
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from loaderbench import Profiler
from loaderbench.script.makers import Makers
from loaderbench.script.order import RecordOrder
from loaderbench.script.recorder import ScriptRecorder
from loaderbench.script.recording import read_recordings
from loaderbench.tracing.block import ENABLED
from loaderbench.tracing.loader import LoaderTrace

Iterate = Callable[[Any], Iterable[Any]]


class Listed(Dataset[torch.Tensor]):
    """Lists the paths of its samples, and draws."""

    def __init__(self) -> None:
        self.samples = [(f"/photos/{number}.jpg", 0) for number in range(64)]
        self.draws = random.Random(0)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(2e-4)  # shorter samples may be counted only
        return torch.full((2,), index)


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    """What is gone now was freed at once."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def used(iterate: Iterate, workers: int, epochs: int = 2) -> list[weakref.ref[Any]]:
    """A loader and its dataset, which are dropped after some epochs."""
    dataset = Listed()
    loader = DataLoader(dataset, batch_size=4, num_workers=workers, persistent_workers=workers > 0)
    for _ in range(epochs):
        for _ in iterate(loader):
            pass
    return [weakref.ref(loader), weakref.ref(dataset)]


def recorder(folder: Path, **order: Any) -> ScriptRecorder:
    return ScriptRecorder(
        RecordOrder(folder=str(folder), python_path=None, **order), DataLoader.__iter__, lambda: None, Makers()
    )


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
def test_so_is_the_loader_of_a_script(tmp_path: Path, workers: int) -> None:
    script = recorder(tmp_path)
    gone = used(script.epoch, workers)
    assert [one() for one in gone] == [None, None]
    assert multiprocessing.active_children() == []
    (recorded,) = script._recorded
    script.finish()
    measured = script._recording_of(recorded, has_ended=True).measured
    assert measured.dataset.description.endswith("Listed, 64 samples")


def test_a_loop_that_is_left_early_ends_its_workers(tmp_path: Path) -> None:
    script = recorder(tmp_path)
    for _ in script.epoch(DataLoader(Listed(), batch_size=4, num_workers=2)):
        break
    assert multiprocessing.active_children() == []


def test_the_next_loader_of_the_same_kind_continues_the_recording() -> None:
    with Profiler("train", trace=True) as prof:
        for _ in range(3):
            used(prof.iter, 2, epochs=1)
    trial = trial_of(prof.result)
    assert trial.epochs is not None
    assert trial.epochs.begun == 3
    assert not [note for note in prof.result.notes if "not recorded" in note]


def test_a_dataset_that_grows_is_the_same_in_a_new_loader() -> None:
    dataset = Listed()
    with Profiler("train") as prof:
        for _ in range(2):
            for _ in prof.iter(DataLoader(dataset, batch_size=4)):
                pass
            dataset.samples *= 2
    assert trial_of(prof.result).epochs.begun == 2
    assert not [note for note in prof.result.notes if "not recorded" in note]


def described(run: Any, workers: int) -> None:
    trial = trial_of(run)
    assert run.dataset.description == "Listed, 64 samples"
    assert trial.config["num_workers"] == workers
    assert trial.samples_per_epoch == 64
    assert trial.dataset_traits == {"random_state": "draws: Random"}
    assert trial.sample_times is not None
    assert {slow.path for slow in trial.sample_times.slowest} <= {f"/photos/{number}.jpg" for number in range(64)}


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
def test_a_trainer_that_its_dataset_refers_to_is_freed(tmp_path: Path, workers: int) -> None:
    script = recorder(tmp_path)
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


def test_a_loader_that_keeps_its_own_iterator_is_freed(tmp_path: Path) -> None:
    loader = Repeating(Listed(), batch_size=4, num_workers=2)
    loader.epoch(recorder(tmp_path).epoch)
    gone = weakref.ref(loader)
    del loader
    assert gone() is None
    assert multiprocessing.active_children() == []


def test_a_loader_of_a_function_that_continues_is_freed(tmp_path: Path) -> None:
    """Its variables are looked at, for the loader's name."""
    script = recorder(tmp_path)
    model = torch.nn.Linear(2, 2)
    loader = DataLoader(Listed(), batch_size=4)
    for batch in script.epoch(loader):
        assert len(batch) == 4
    gone = [weakref.ref(loader), weakref.ref(model), weakref.ref(batch)]
    del loader, model, batch
    assert [one() for one in gone] == [None] * 3


def test_the_user_s_own_dictionary_of_variables_stays_as_it_was(tmp_path: Path) -> None:
    def run(rate: float = 0.1) -> dict[str, Any]:
        arguments = locals()
        loader = DataLoader(Listed(), batch_size=4)
        for _ in script.epoch(loader):
            break
        return dict(arguments)

    script = recorder(tmp_path)
    assert run()["rate"] == 0.1


def test_what_exec_has_put_among_the_variables_stays(tmp_path: Path) -> None:
    script = recorder(tmp_path)
    exec("rate = 0.1")
    loader = DataLoader(Listed(), batch_size=4)
    list(script.epoch(loader))
    assert eval("rate") == 0.1


def test_workers_that_persist_are_the_loader_s_own(tmp_path: Path) -> None:
    loader = DataLoader(Listed(), batch_size=4, num_workers=1, persistent_workers=True)
    script = recorder(tmp_path)
    pids = []
    for _ in range(2):
        list(script.epoch(loader))
        pids.append([worker.pid for worker in loader._iterator._workers])  # type: ignore[union-attr]
    script.finish()
    list(loader)
    pids.append([worker.pid for worker in loader._iterator._workers])  # type: ignore[union-attr]
    assert pids == [pids[0]] * 3
    loader._iterator = None  # as for a dataset that has changed
    list(recorder(tmp_path).epoch(loader))
    assert loader._iterator is not None
    assert [worker.pid for worker in loader._iterator._workers] != pids[0]


def test_two_loaders_in_turn_keep_their_workers(tmp_path: Path) -> None:
    script = recorder(tmp_path)
    loaders = [DataLoader(Listed(), batch_size=4, num_workers=1, persistent_workers=True) for _ in range(2)]
    pids = []
    for _ in range(2):
        for loader in loaders:
            list(script.epoch(loader))
            pids.append(loader._iterator._workers[0].pid)  # type: ignore[union-attr]
    assert pids == pids[:2] * 2


def test_a_loader_of_another_length_takes_the_place_of_one_that_is_gone(tmp_path: Path) -> None:
    script = recorder(tmp_path)
    for length in (64, 32, 16):
        dataset = Listed()
        del dataset.samples[length:]
        loader = DataLoader(dataset, batch_size=4)
        list(script.epoch(loader))
        del loader
    (recorded,) = script._recorded
    assert recorded.profiler._recorder.begun == 3


def test_two_loaders_of_one_length_that_exist_together_stay_apart(tmp_path: Path) -> None:
    """As a dictionary of loaders for training and validation, made in one line and iterated over in one."""
    script = recorder(tmp_path)
    loaders = {phase: DataLoader(Listed(), batch_size=4) for phase in ("train", "val")}
    for phase in ("train", "val", "train", "val"):
        list(script.epoch(loaders[phase]))
    assert [one.profiler._recorder.begun for one in script._recorded] == [2, 2]


def test_a_number_of_workers_from_numpy_is_a_plain_number() -> None:
    with Profiler("train", warmup=0) as prof:
        list(prof.iter(DataLoader(Listed(), 4, num_workers=np.int64(1), prefetch_factor=np.int64(3))))  # type: ignore[arg-type]
    config = prof.result.to_dict()["trials"][0]["config"]
    assert (config["num_workers"], config["prefetch_factor"]) == (1, 3)


def test_what_a_script_did_to_its_own_state_does_not_keep_it_from_being_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, gone = recorder(tmp_path), tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    list(script.epoch(DataLoader(Listed(), batch_size=4)))
    gone.rmdir()
    monkeypatch.setattr(sys, "argv", [])
    script.finish()
    assert len(read_recordings(tmp_path)) == 1


def test_an_image_that_is_opened_and_never_loaded_is_closed_at_once(tmp_path: Path) -> None:
    file = tmp_path / "photo.png"
    Image.new("RGB", (4, 3)).save(file)
    opened: list[weakref.ref[Any]] = []

    class Sizes(Listed):
        def __getitem__(self, index: int) -> torch.Tensor:
            image = Image.open(file)
            opened.append(weakref.ref(image))
            return torch.tensor(image.size)

    with Profiler("train", trace=True) as prof:
        list(prof.iter(DataLoader(Sizes(), batch_size=4)))
    assert len(opened) == 64
    assert all(one() is None for one in opened)


def test_an_image_is_loaded_pickled_and_copied_as_without_us(tmp_path: Path) -> None:
    file = tmp_path / "photo.png"
    Image.new("RGB", (4, 3), "red").save(file)
    kinds: set[type] = set()

    class Unusual(Listed):
        def __getitem__(self, index: int) -> torch.Tensor:
            pixels = Image.open(file).load()
            assert pixels is not None
            sent = pickle.loads(pickle.dumps(Image.open(file)))
            copied = copy.copy(Image.open(file))
            assert Image.open(file) == Image.open(file)
            image = Image.open(file)
            with image:
                reds = [one.convert("RGB").getpixel((0, 0)) for one in (image, sent, copied)]
            kinds.add(type(image))
            assert [*reds, pixels[0, 0]] == [(255, 0, 0)] * 4
            return torch.tensor(image.size)

    with Profiler("train", trace=True) as prof:
        assert len(list(prof.iter(DataLoader(Unusual(), batch_size=4)))) == 16
    assert [kind.__module__ for kind in kinds] == ["PIL.PngImagePlugin"]
    assert isinstance(Image.open(file), kinds.pop())
    (trial,) = prof.result.trials
    assert trial.stages["decode"].wall_s > 0


def test_a_dropped_loader_has_the_paths_of_its_own_samples() -> None:
    with Profiler("train", trace=True) as prof:
        used(prof.iter, 0)
        other = Listed()
        other.samples = [(f"/other/{number}.jpg", 0) for number in range(64)]
        known = prof._observer.known
        noted = dict(known._paths)
        assert noted
        assert all(path == f"/photos/{number}.jpg" for number, path in noted.items())


def test_an_error_of_the_loader_that_the_script_catches_ends_no_epoch(tmp_path: Path) -> None:
    """Torch continues with the next batch."""

    class Broken(Listed):
        def __getitem__(self, index: int) -> torch.Tensor:
            if index == 5:
                raise OSError("unreadable")
            return super().__getitem__(index)

    batches, taken, failed = recorder(tmp_path).epoch(DataLoader(Broken(), batch_size=4)), 0, 0
    while True:
        try:
            next(batches)
            taken += 1
        except StopIteration:
            break
        except OSError:
            failed += 1
    assert (taken, failed) == (15, 1)


def test_attributes_of_an_iterator_can_be_set(tmp_path: Path) -> None:
    batches: Any = recorder(tmp_path).epoch(DataLoader(Listed(), batch_size=4))
    batches.note = "mine"
    assert batches.note == "mine"


def test_a_loader_without_a_hash_or_a_place_is_still_iterated_over(tmp_path: Path, monkeypatch: Any) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no place")

    monkeypatch.setattr("loaderbench.script.recorder.place_of", fails)
    assert len(list(recorder(tmp_path).epoch(DataLoader(Listed(), batch_size=4)))) == 16


def is_traced(script: ScriptRecorder) -> bool:
    (recorded,) = script._recorded
    trace = recorded.profiler._observer.trace
    assert isinstance(trace, LoaderTrace)
    return not recorded.profiler.is_over or trace.blocks[0].header[ENABLED] != 0


def test_after_its_seconds_nothing_is_traced_any_more(tmp_path: Path) -> None:
    script = recorder(tmp_path)
    for number, _ in enumerate(script.epoch(DataLoader(Listed(), batch_size=1))):
        if number == 5:
            script._recorded[0].profiler._until_s = 0.0
        if number >= 5 and is_traced(script):
            time.sleep(0.05)  # until the next look at the clock is due
    assert (number, is_traced(script)) == (63, False)


def test_nor_where_they_pass_between_two_epochs(tmp_path: Path) -> None:
    script, loader = recorder(tmp_path), DataLoader(Listed(), batch_size=1)
    list(script.epoch(loader))
    assert is_traced(script)
    script._until_s = 0.0
    assert len(list(script.epoch(loader))) == 64
    assert not is_traced(script)
