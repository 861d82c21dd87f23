"""What holds for the loader `webdataset`: shards of the tar copy, read by workers of torch's `DataLoader`."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("webdataset")
from loader_batches import (  # noqa: E402
    built,
    check_closing,
    check_only_its_copy_is_read,
    drawn,
    files_of,
    images,
    stored,
    tiny_images,
)
from packed_text import packed  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

from loaderbench.datasets.image_samples import ImageSamples, imagenet_eval  # noqa: E402
from loaderbench.errors import BadImageError  # noqa: E402
from loaderbench.formats import FORMATS, StoredCopy, written_copy  # noqa: E402
from loaderbench.loaders.torch_loader import TorchLoader  # noqa: E402
from loaderbench.loaders.webdataset_loader import WebDataset  # noqa: E402
from loaderbench.remedies.program import python_program  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "loaders" / "webdataset.md"


def copied(files: list[tuple[str, int]], cache: Path) -> StoredCopy:
    return written_copy(files, "tar", FORMATS["tar"], cache_dir=cache)


@pytest.fixture(scope="module")
def source(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> ImageSamples:
    """24 photos, each in a shard of its own; a label is the number of its photo."""
    files = files_of(photos)
    return stored(files, copied(files, tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> ImageSamples:
    folder = tmp_path_factory.mktemp("tiny")
    files = tiny_images(folder)
    return stored(files, copied(files, folder / "cache"), "to_tensor")


def labels(source: ImageSamples, batches: int, **arguments: Any) -> list[int]:
    found: list[int] = drawn(WebDataset(), source, batches, **arguments)[1].tolist()
    return found


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_images_are_exactly_those_of_torch_in_the_order_of_the_files(source: ImageSamples, workers: int) -> None:
    files = list(source.samples)
    theirs, their_labels = drawn(TorchLoader(), images(files), 8, batch_size=5, num_workers=0)
    found, own_labels = drawn(WebDataset(), source, 8, batch_size=5, num_workers=workers)
    assert (found.dtype, own_labels.dtype, found.shape) == (torch.float32, torch.int64, (40, 3, 224, 224))
    assert own_labels.tolist() == their_labels.tolist() == [*range(24), *range(16)]
    assert torch.equal(found, theirs)


@pytest.mark.parametrize("workers", [0, 2])
def test_without_batches_samples_come_one_by_one(tiny: ImageSamples, workers: int) -> None:
    with built(WebDataset(), tiny, batch_size=None, num_workers=workers) as found:
        assert [int(label) for _, label in islice(found.iterable, 40)] == [*range(40)]


@pytest.mark.parametrize(("workers", "buffer"), [(0, 1000), (0, 8), (1, None), (2, 1000), (4, 3)])
def test_shuffled_every_sample_comes_once_an_epoch_and_again_with_the_same_seed(
    tiny: ImageSamples, workers: int, buffer: int | None
) -> None:
    arguments = {"batch_size": 5, "shuffle": True, "num_workers": workers, "shuffle_buffer": buffer}
    found = labels(tiny, 24, **arguments)
    epochs = [found[begin : begin + 40] for begin in (0, 40, 80)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(40))] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert found == labels(tiny, 24, **arguments)
    assert found != labels(tiny, 24, **arguments, seed=4)


def test_workers_with_unequal_shards_each_read_all_of_theirs(tiny: ImageSamples) -> None:
    """Of 20 shards three workers have 7, 7 and 6: those of the last come again a little earlier."""
    found = labels(tiny, 42, batch_size=2, shuffle=True, num_workers=3)
    by_worker = [[label for place, label in enumerate(found) if place // 2 % 3 == worker] for worker in range(3)]
    assert [len(set(own)) for own in by_worker] == [14, 14, 12]
    assert Counter(label for own in by_worker for label in set(own)) == Counter(range(40))
    assert all(len(set(own[: len(set(own))])) == len(set(own)) for own in by_worker)


def test_more_workers_than_shards_are_refused(tiny: ImageSamples) -> None:
    with pytest.raises(ValueError, match=r"^21 workers, but 20 shards: .* use at most 20$"):
        WebDataset().build(tiny, {"num_workers": 21, "shuffle": True}, seed=0)
    assert labels(tiny, 20, batch_size=2, shuffle=True, num_workers=20) != [*range(40)]
    assert labels(tiny, 22, batch_size=2, num_workers=21) == [*range(40), *range(4)]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_truncated_image_is_named(photos: Path, tmp_path: Path, workers: int) -> None:
    whole, bad = sorted(photos.rglob("*.jpg"))[0], tmp_path / "bad.jpg"
    bad.write_bytes(whole.read_bytes()[:2000])
    files = [(str(whole), 0), (str(bad), 1)]
    found = stored(files, copied(files, tmp_path / "cache"))
    raises = pytest.raises(BadImageError, match=f"(?m)^(?:.*BadImageError: )?{bad}: ")
    batches = WebDataset().build(found, {"batch_size": 2, "num_workers": workers}, seed=0)
    iterator = iter(batches.iterable)
    with raises:
        next(iterator)
    batches.close(iterator)


@pytest.mark.parametrize("left", [None, 700, 1024, 1_000_000])
def test_a_damaged_shard_is_named(tiny: ImageSamples, tmp_path: Path, left: int | None) -> None:
    files = list(tiny.samples)
    copy = copied(files, tmp_path)
    shard = copy.parts[3] / "shard.tar"
    whole = shard.read_bytes()
    shard.unlink()
    if left is not None:
        shard.write_bytes(b"x" * 1024 + whole if left > len(whole) else whole[:left])
    named = copy.folder if left == 1024 else shard  # a tar reader cannot see an end between two files
    raises = pytest.raises(OSError, match=f"^{named}: cannot be read: .*; delete {copy.folder} to write the copy")
    with built(WebDataset(), stored(files, copy, "to_tensor"), batch_size=10) as batches, raises:
        list(islice(batches.iterable, 5))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [None, 0, 5])
def test_it_closes_before_the_first_batch_after_some_and_twice(
    tiny: ImageSamples, workers: int, taken: int | None
) -> None:
    check_closing(WebDataset(), tiny, workers=workers, taken=taken)


def test_only_a_tar_copy_is_read(photos: Path, tmp_path: Path, tiny: ImageSamples) -> None:
    check_only_its_copy_is_read(WebDataset(), tiny, files_of(photos)[:2], tmp_path)


def test_all_its_arguments_take_effect(tiny: ImageSamples) -> None:
    arguments = {"batch_size": 2, "shuffle": True, "shuffle_buffer": 5, "drop_last": True, "keep_memory": False}
    with built(WebDataset(), tiny, **arguments) as found:
        assert (found.configured, found.batch_size, found.samples_per_epoch) == (arguments.keys(), 2, 40)


@pytest.mark.parametrize(("shuffle", "buffer"), [(True, 5), (False, None)])
def test_a_buffer_is_one_configuration_without_shuffle(shuffle: bool, buffer: int | None) -> None:
    config: dict[str, Any] = {"shuffle_buffer": 5, "num_workers": 0}
    assert WebDataset().normalized(config, {"shuffle": shuffle})["shuffle_buffer"] == buffer


def test_the_code_that_a_report_shows_gives_the_images_of_the_dataset(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dataset = ImageFolder(str(photos), imagenet_eval())
    for shuffle in (False, True):
        program: dict[str, Any] = {"dataset": dataset}
        arguments = {"batch_size": 4, "num_workers": 0, "shuffle": shuffle, "drop_last": True}
        exec("\n".join(WebDataset().code(arguments, ["# a comment"])), program)
        found = [*program["loader"]]
        assert [len(own) for _, own in found] == [4] * 6
        own_labels = torch.cat([own for _, own in found])
        assert sorted(own_labels.tolist()) == sorted(dataset.targets)
        if not shuffle:
            assert torch.equal(torch.cat([image for image, _ in found]), torch.stack([image for image, _ in dataset]))


def test_the_page_shows_the_code_that_a_report_shows() -> None:
    config = {"loader": "webdataset", "num_workers": 2, "batch_size": 32, "shuffle": True, "drop_last": True}
    assert packed(f"```python\n{python_program(config, {}, None)}```") in packed(PAGE.read_text(encoding="utf-8"))
