"""A stage that is free gives what it gave before: same shapes and types, and nothing of it is done again.

Everything runs in a worker: what is replaced there ends with it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from counted import (
    BATCH,
    BATCHES,
    KEPT,
    ONE_WORKER,
    Count,
    Counted,
    batches_with,
    distinct,
)
from PIL import Image
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    Subset,
    TensorDataset,
)
from torchvision.datasets import ImageFolder
from torchvision.transforms import ToTensor

from loaderbench.datasets.decoders import decode_pillow
from loaderbench.datasets.image_samples import TRANSFORMS, StoredSamples
from loaderbench.formats import FORMATS, written_copy
from loaderbench.freeing import CannotFreeError, Freeing
from loaderbench.freeing.dataset import free_dataset
from loaderbench.freeing.loader import free_loader
from loaderbench.loaders import LOADER_BACKENDS
from loaderbench.loaders.seeded import SeededSamples
from loaderbench.tracing.hooks import library_functions


def test_all_trials_of_a_round_load_the_same_few_samples(photos: Path) -> None:
    assert len(distinct(batches_with(Counted(photos).dataset, None))) == KEPT


@pytest.mark.parametrize(("stage", "once"), [("decode", "decode"), ("transform/Step", "to_tensor")])
def test_a_free_stage_runs_once_for_each_kept_sample_and_the_others_still_run(
    photos: Path, stage: str, once: str
) -> None:
    made = Counted(photos)
    before = batches_with(made.dataset, None)
    counts = {"decode": made.decode, "to_tensor": made.to_tensor}
    already = {name: count.made for name, count in counts.items()}
    found = batches_with(made.dataset, stage)
    assert distinct(found) == distinct(before)
    for name, count in counts.items():
        calls = count.made - already[name]
        assert calls == KEPT if name == once else calls >= BATCH * BATCHES


def test_a_compose_is_free_as_a_whole_and_decoding_still_runs(photos: Path) -> None:
    made = Counted(photos)
    assert len(distinct(batches_with(made.dataset, "transform"))) == KEPT
    assert made.to_tensor.made == KEPT
    assert made.decode.made >= BATCH * BATCHES


@pytest.mark.parametrize("stage", ["transform", "transform/ScaledResizedCrop"])
def test_a_free_transform_still_decodes_an_image_that_was_only_opened(photos: Path, stage: str) -> None:
    decoded = Count(lambda scale: scale)

    class Opened:
        """Opens photos, and counts those that are decoded."""

        def __call__(self, path: str) -> Image.Image:
            image = Image.open(path)
            image.load_end = lambda: decoded((image.decoderconfig or (1,))[0])
            return image

    dataset = ImageFolder(str(photos), TRANSFORMS["imagenet_train_scaled"](True), loader=Opened())
    assert len(distinct(batches_with(dataset, stage))) <= KEPT * (1 if stage == "transform" else 2), "flipped or not"
    assert decoded.made >= BATCH * BATCHES


def test_what_a_later_stage_changes_in_place_is_given_unchanged_each_time(photos: Path) -> None:
    """`Darken` halves the tensor that the free `Step` gives: kept without a copy, it would fade."""
    made = Counted(photos)
    assert distinct(batches_with(made.dataset, "transform/Step")) == distinct(batches_with(made.dataset, None))


@pytest.fixture
def vanishing(tmp_path: Path) -> Path:
    """Files that a test may remove."""
    for number in range(KEPT):
        Image.fromarray(np.full((9, 9, 3), 40 * number, np.uint8)).save(tmp_path / f"{number}.png")
    return tmp_path


class Opaque(Dataset[Any]):
    """Reads and decodes inside of `__getitem__`, as most datasets do."""

    def __init__(self, folder: Path, read: Callable[[Path], Image.Image]) -> None:
        self._paths, self._read = sorted(folder.iterdir()), read
        self.reads = Count(read)

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> Any:
        path = self._paths[index]
        return torch.from_numpy(np.array(self._read(path).convert("RGB"))), index


def from_path(path: Path) -> Image.Image:
    return Image.open(path)


def from_bytes(path: Path) -> Image.Image:
    return Image.open(io.BytesIO(path.read_bytes()))


def take_and_remove_files(dataset: Any, stage: str, folder: Path) -> list[Any]:
    """Batches of which most are made when the files are gone."""
    made = LOADER_BACKENDS["torch"].build(dataset, ONE_WORKER, seed=0)
    free_loader(made, Freeing(stage, KEPT))
    iterator = iter(made.iterable)
    try:
        found = [next(iterator)]
        for path in folder.iterdir():
            path.unlink()
        return found + list(islice(iterator, BATCHES))
    finally:
        made.close(iterator)


@pytest.mark.parametrize("read", [from_path, from_bytes])
def test_free_reads_need_no_files(vanishing: Path, read: Callable[[Path], Image.Image]) -> None:
    found = take_and_remove_files(Opaque(vanishing, read), "read", vanishing)
    assert len(distinct(found)) == KEPT


@pytest.mark.parametrize("read", [from_path, from_bytes])
def test_free_decoding_still_reads_the_files(vanishing: Path, read: Callable[[Path], Image.Image]) -> None:
    assert len(distinct(batches_with(Opaque(vanishing, read), "decode"))) == KEPT
    with pytest.raises(FileNotFoundError):
        take_and_remove_files(Opaque(vanishing, read), "decode", vanishing)


def test_a_free_loader_function_still_reads_the_files(vanishing: Path) -> None:
    folder = vanishing / "class"
    folder.mkdir()
    for path in list(vanishing.glob("*.png")):
        path.rename(folder / path.name)
    with pytest.raises(FileNotFoundError):
        take_and_remove_files(ImageFolder(str(vanishing), ToTensor()), "decode", folder)


def test_free_reads_need_no_copy_in_another_format(vanishing: Path, tmp_path: Path) -> None:
    samples = [(str(path), number) for number, path in enumerate(sorted(vanishing.iterdir()))]
    copy = written_copy(samples, "tar", FORMATS["tar"], cache_dir=tmp_path / "cache")
    stored = StoredSamples(copy.reader(FORMATS["tar"]), samples, decode_pillow, ToTensor())
    assert len(distinct(take_and_remove_files(stored, "read", copy.parts[0]))) == KEPT
    with pytest.raises(OSError, match="part-00000"):
        batches_with(stored, "decode")


def test_a_sample_is_free_as_a_whole(vanishing: Path) -> None:
    assert len(distinct(take_and_remove_files(Opaque(vanishing, from_path), "sample", vanishing))) == KEPT


class Stream(IterableDataset[Any]):
    """Counts what it yields."""

    def __init__(self) -> None:
        self.made = Count(lambda number: (torch.full((2,), number), number))

    def __iter__(self) -> Iterator[Any]:
        return (self.made(number) for number in range(1_000))


def test_samples_of_a_stream_are_kept_as_they_come() -> None:
    stream = Stream()
    free = LOADER_BACKENDS["torch"].build(stream, {"batch_size": BATCH, "num_workers": 1}, seed=0)
    free_loader(free, Freeing("sample", KEPT))
    iterator = iter(free.iterable)
    found = list(islice(iterator, BATCHES))
    free.close(iterator)
    assert stream.made.made == KEPT
    assert len({int(number) for _, numbers in found for number in numbers}) == KEPT


class Retries(Dataset[int]):
    """Makes several samples at a time, by a method that takes more than their indices."""

    def __init__(self) -> None:
        self.numbers, self.transform = list(range(40)), lambda number: number * 10

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> int:
        return int(self.transform(self.numbers[index]))

    def __getitems__(self, indices: Any, tries: int = 0) -> list[int]:
        return [self[index] for index in indices] if tries else self.__getitems__(indices=indices, tries=1)


@pytest.fixture
def libraries_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the library functions that replay: a trial's process exits, but this process runs more tests."""
    for owner, name, _ in library_functions():
        monkeypatch.setattr(owner, name, getattr(owner, name))


@pytest.mark.usefixtures("libraries_as_before")
def test_a_dataset_that_makes_several_samples_may_take_more_arguments_and_an_iterator() -> None:
    dataset = Retries()
    free_dataset(dataset, "transform", [0, 1, 2])
    assert dataset.__getitems__([0, 1, 2]) == [0, 10, 20]
    assert dataset.__getitems__(iter([2, 1]), tries=1) == [20, 10]


def test_a_stage_that_is_not_there_is_an_error_that_says_so() -> None:
    with pytest.raises(Exception, match="no transform stage was found in Stream"):
        batches_with(Stream(), "transform", shuffle=False, drop_last=False)


def test_a_loader_without_workers_is_freed_in_this_process() -> None:
    class Here(Dataset[Any]):
        def __init__(self) -> None:
            self.made = 0

        def __len__(self) -> int:
            return 100

        def __getitem__(self, index: int) -> Any:
            self.made += 1
            return torch.tensor(index)

    dataset = Here()
    batches_with(dataset, "sample", num_workers=0)
    assert dataset.made == KEPT


def test_a_stage_of_samples_that_are_seeded_and_made_in_one_call_is_free(photos: Path) -> None:
    made = Counted(photos)
    part = Subset(made.dataset, range(len(made.dataset)))
    found = batches_with(SeededSamples(part, seed=3), "decode", shuffle=False)
    assert made.decode.made <= KEPT
    assert len(found) == BATCHES


def test_samples_that_are_asked_for_several_at_once_cannot_be_freed() -> None:
    numbers = torch.arange(64.0)
    loader: Any = DataLoader(
        TensorDataset(numbers), batch_size=None, sampler=BatchSampler(SequentialSampler(numbers), 4, drop_last=True)
    )
    batches = LOADER_BACKENDS["torch"].build(loader, {}, seed=0)
    with pytest.raises(CannotFreeError, match="several samples at once"):
        free_loader(batches, Freeing(stage="sample", kept=8, seed=0))
