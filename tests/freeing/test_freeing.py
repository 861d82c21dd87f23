"""A stage that is free gives what it gave before: same shapes and types, and nothing of it is done again.

Everything runs in a worker: what is replaced there ends with it.
"""

from __future__ import annotations

import io
import multiprocessing
from collections import UserDict
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, default_collate
from torchvision.datasets import ImageFolder
from torchvision.transforms import Compose, ToTensor

from loaderbench.datasets.decoders import decode_pillow
from loaderbench.datasets.image_samples import TRANSFORMS, StoredSamples
from loaderbench.formats import FORMATS, written_copy
from loaderbench.freeing import Freeing
from loaderbench.freeing.batches import KeptBatches
from loaderbench.freeing.dataset import free_dataset
from loaderbench.freeing.loader import free_loader
from loaderbench.freeing.order import CannotFreeError
from loaderbench.loaders import LOADER_BACKENDS
from loaderbench.loaders.seeded import SeededSamples

KEPT, BATCH, BATCHES = 4, 4, 6
ONE_WORKER = {"batch_size": BATCH, "num_workers": 1, "drop_last": True, "shuffle": True}


class Count:
    """Counts calls of a function, in all processes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.calls = function, multiprocessing.Value("i", 0)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self.calls.get_lock():
            self.calls.value += 1
        return self.function(*args, **kwargs)

    @property
    def made(self) -> int:
        return int(self.calls.value)


def open_rgb(path: str) -> Image.Image:
    with Image.open(path) as image:
        return image.convert("RGB")


class Darken:
    """A transform in place, as many are."""

    def __call__(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels.mul_(0.5)


class Counted:
    """Photos whose stages count their calls."""

    def __init__(self, photos: Path) -> None:
        self.decode, self.to_tensor, self.collate = Count(open_rgb), Count(ToTensor()), Count(default_collate)
        self.dataset = ImageFolder(str(photos), Compose([Step(self.to_tensor), Darken(), Square()]), loader=self.decode)


class Step:
    def __init__(self, count: Count) -> None:
        self.count = count

    def __call__(self, image: Any) -> Any:
        return self.count(image)


class Square:
    def __call__(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels[:, :8, :8]


def batches_with(dataset: Any, stage: str | None, count: int = BATCHES, **arguments: Any) -> list[Any]:
    made = LOADER_BACKENDS["torch"].build(dataset, {**ONE_WORKER, **arguments}, seed=0)
    free_loader(made, Freeing(stage, KEPT))
    iterator = iter(made.iterable)
    try:
        return list(islice(iterator, count))
    finally:
        made.close(iterator)


def distinct(batches: list[Any]) -> set[bytes]:
    return {image.numpy().tobytes() for images, _ in batches for image in images}


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


def test_a_dataset_that_makes_several_samples_may_take_more_arguments_and_an_iterator() -> None:
    dataset = Retries()
    free_dataset(dataset, "transform", [0, 1, 2])
    assert dataset.__getitems__([0, 1, 2]) == [0, 10, 20]
    assert dataset.__getitems__(iter([2, 1]), tries=1) == [20, 10]


def test_free_collating_hands_out_batches_that_were_made_before(photos: Path) -> None:
    made = Counted(photos)
    source = DataLoader(made.dataset, BATCH, num_workers=1, collate_fn=made.collate)
    found = batches_with(source, "collate")
    assert 0 < made.collate.made < BATCHES
    assert made.decode.made == BATCHES * BATCH
    assert {tuple(images.shape) for images, _ in found} == {(BATCH, 3, 8, 8)}


def test_batches_of_a_free_collate_cost_the_same_to_send_each_time(photos: Path) -> None:
    """A tensor that has been moved to shared memory once would be sent for nothing."""
    made = Counted(photos)
    collate = KeptBatches(made.collate, 1)
    samples = [made.dataset[index] for index in range(BATCH)]
    for _ in range(3):
        images, _labels = collate(samples)
        assert not images.is_shared()
        images.share_memory_()
    assert made.collate.made == 1
    shared = KeptBatches(lambda _: torch.zeros(2).share_memory_(), 1)
    assert shared([1]).data_ptr() == shared([1]).data_ptr()


class Pair(NamedTuple):
    images: torch.Tensor
    labels: torch.Tensor


@dataclass
class Record:
    images: torch.Tensor


class Named(MutableMapping[str, torch.Tensor]):
    """A library's own mapping, of which a plain copy shares the parts."""

    def __init__(self, **parts: torch.Tensor) -> None:
        self.parts = parts

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.parts[name]

    def __setitem__(self, name: str, part: torch.Tensor) -> None:
        self.parts[name] = part

    def __delitem__(self, name: str) -> None:
        del self.parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)


class Encoding(UserDict[str, torch.Tensor]):
    """As a tokenizer of transformers returns one."""


@pytest.mark.parametrize(
    ("made", "images_of"),
    [
        (lambda: {"images": [torch.zeros(2)]}, lambda batch: batch["images"][0]),
        (lambda: Pair(torch.zeros(2), torch.zeros(1)), lambda batch: batch.images),
        (lambda: Encoding(images=torch.zeros(2)), lambda batch: batch["images"]),
        (lambda: Named(images=torch.zeros(2)), lambda batch: batch["images"]),
        (lambda: Record(torch.zeros(2)), lambda batch: batch.images),
    ],
)
def test_so_do_batches_in_other_containers(made: Callable[[], Any], images_of: Callable[[Any], torch.Tensor]) -> None:
    collate = KeptBatches(lambda _: made(), 1)
    for _ in range(3):
        batch = collate([1])
        assert type(batch) is type(made())
        assert not images_of(batch).is_shared()
        images_of(batch).share_memory_()


def test_free_transport_sends_a_token_and_all_else_still_runs(photos: Path) -> None:
    made = Counted(photos)
    source = DataLoader(made.dataset, BATCH, num_workers=1, collate_fn=made.collate)
    found = batches_with(source, "transport", 5)
    assert made.collate.made >= 5
    assert {images.data_ptr() for images, _ in found[1:]} == {found[1][0].data_ptr()}


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


def test_without_workers_nothing_is_sent_that_could_be_free(photos: Path) -> None:
    with pytest.raises(CannotFreeError, match="no worker processes: batches are loaded in the main process"):
        batches_with(Counted(photos).dataset, "transport", num_workers=0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="batches can be pinned here")
def test_batches_that_cannot_be_pinned_are_kept_as_they_are(photos: Path) -> None:
    """As torch's own loader does, which ignores `pin_memory` without a GPU."""
    source = DataLoader(Counted(photos).dataset, BATCH, num_workers=1, pin_memory=True)
    assert len(batches_with(source, "transport", 5)) == 5


def test_a_stage_of_samples_that_are_seeded_and_made_in_one_call_is_free(photos: Path) -> None:
    made = Counted(photos)
    part = Subset(made.dataset, range(len(made.dataset)))
    found = batches_with(SeededSamples(part, seed=3), "decode", shuffle=False)
    assert made.decode.made <= KEPT
    assert len(found) == BATCHES
