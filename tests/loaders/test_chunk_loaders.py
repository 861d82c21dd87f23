"""What holds for the loaders `litdata` and `streaming`: a copy in their format, read by workers of a `DataLoader`."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import islice
from multiprocessing import active_children
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
from loader_batches import (  # noqa: E402
    built,
    check_closing,
    check_only_its_copy_is_read,
    drawn,
    files_of,
    images,
    left_behind,
    sharing_leftovers,
    stored,
    tiny_images,
)
from packed_text import packed  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

from loaderbench.datasets.image_samples import ImageSamples, imagenet_eval  # noqa: E402
from loaderbench.errors import BadImageError  # noqa: E402
from loaderbench.formats import FORMATS, StoredCopy, written_copy  # noqa: E402
from loaderbench.loaders import LOADER_BACKENDS, LoaderBackend  # noqa: E402
from loaderbench.loaders.torch_loader import TorchLoader  # noqa: E402
from loaderbench.remedies.program import python_program  # noqa: E402

pytestmark = sharing_leftovers
PAGES = Path(__file__).parents[2] / "docs" / "reference" / "loaders"


class Kind(NamedTuple):
    """One of the loaders."""

    name: str

    @property
    def backend(self) -> LoaderBackend:
        return LOADER_BACKENDS[self.name]

    def copied(self, files: list[tuple[str, int]], cache: Path) -> StoredCopy:
        name = self.backend.format
        return written_copy(files, name, FORMATS[name], cache_dir=cache)

    def labels(self, source: ImageSamples, batches: int, **arguments: Any) -> list[int]:
        found: list[int] = drawn(self.backend, source, batches, **arguments)[1].tolist()
        return found

    def left_behind(self) -> set[str]:
        return left_behind(self.name)


KINDS = [Kind("litdata"), Kind("streaming")]


@pytest.fixture(scope="module", params=[pytest.param(kind, id=kind.name) for kind in KINDS])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    if find_spec(found.backend.needs) is None:
        pytest.skip(f"{found.name} is not installed")
    return found


@pytest.fixture(scope="module")
def source(kind: Kind, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> ImageSamples:
    """24 photos; a label is the number of its photo."""
    files = files_of(photos)
    return stored(files, kind.copied(files, tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def tiny(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> ImageSamples:
    folder = tmp_path_factory.mktemp("tiny")
    files = tiny_images(folder)
    return stored(files, kind.copied(files, folder / "cache"), "to_tensor")


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_images_are_exactly_those_of_torch_in_the_order_of_the_files(
    kind: Kind, source: ImageSamples, workers: int
) -> None:
    theirs, their_labels = drawn(TorchLoader(), images(list(source.samples)), 8, batch_size=5, num_workers=0)
    found, own_labels = drawn(kind.backend, source, 8, batch_size=5, num_workers=workers)
    assert (found.dtype, own_labels.dtype, found.shape) == (torch.float32, torch.int64, (40, 3, 224, 224))
    assert own_labels.tolist() == their_labels.tolist() == [*range(24), *range(16)]
    assert torch.equal(found, theirs)


@pytest.mark.parametrize("workers", [0, 2])
def test_without_batches_samples_come_one_by_one(kind: Kind, tiny: ImageSamples, workers: int) -> None:
    with built(kind.backend, tiny, batch_size=None, num_workers=workers) as found:
        assert [int(label) for _, label in islice(found.iterable, 40)] == [*range(40)]


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_shuffled_every_sample_comes_once_an_epoch_and_again_with_the_same_seed(
    kind: Kind, tiny: ImageSamples, workers: int
) -> None:
    arguments = {"batch_size": 5, "shuffle": True, "num_workers": workers}
    found = kind.labels(tiny, 24, **arguments)
    epochs = [found[begin : begin + 40] for begin in (0, 40, 80)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(40))] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert found == kind.labels(tiny, 24, **arguments)
    assert found != kind.labels(tiny, 24, **arguments, seed=4)


@pytest.mark.parametrize("shuffle", [False, True])
def test_workers_with_unequal_parts_go_on_for_many_epochs(kind: Kind, tiny: ImageSamples, shuffle: bool) -> None:
    found = kind.labels(tiny, 200, batch_size=3, shuffle=shuffle, num_workers=3, prefetch_factor=1)
    assert len(found) == 600
    assert set(found) == set(range(40))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_truncated_image_is_named(kind: Kind, photos: Path, tmp_path: Path, workers: int) -> None:
    whole, bad = sorted(photos.rglob("*.jpg"))[0], tmp_path / "bad.jpg"
    bad.write_bytes(whole.read_bytes()[:2000])
    files = [(str(whole), 0), (str(bad), 1)]
    found = stored(files, kind.copied(files, tmp_path / "cache"))
    batches = kind.backend.build(found, {"batch_size": 2, "num_workers": workers}, seed=0)
    iterator = iter(batches.iterable)
    with pytest.raises(BadImageError, match=f"(?m)^(?:.*BadImageError: )?{bad}: "):
        next(iterator)
    batches.close(iterator)


def test_a_part_that_is_gone_is_an_error_that_names_the_copy(kind: Kind, tiny: ImageSamples, tmp_path: Path) -> None:
    files = list(tiny.samples)
    copy = kind.copied(files, tmp_path)
    for file in copy.parts[3].iterdir():
        file.unlink()
    raises = pytest.raises(
        OSError, match=f"(?s){copy.folder}: cannot be read: .*delete {copy.folder} to write the copy"
    )
    with built(kind.backend, stored(files, copy, "to_tensor"), batch_size=10) as batches, raises:
        list(islice(batches.iterable, 5))


@pytest.mark.filterwarnings("error", "ignore:unclosed file:ResourceWarning")  # the index of MosaicML's library
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [None, 0, 5])
def test_it_closes_before_the_first_batch_after_some_and_twice_and_leaves_nothing(
    kind: Kind, tiny: ImageSamples, workers: int, taken: int | None
) -> None:
    before = kind.left_behind()
    check_closing(kind.backend, tiny, workers=workers, taken=taken)
    assert kind.left_behind() <= before


def test_persistent_workers_end_with_it_and_leave_nothing(kind: Kind, tiny: ImageSamples) -> None:
    before, children = kind.left_behind(), set(active_children())
    arguments = {"batch_size": 2, "num_workers": 2, "shuffle": True, "persistent_workers": True}
    with built(kind.backend, tiny, **arguments) as found:
        assert len(list(islice(found.iterable, 5))) == 5
        assert len(set(active_children()) - children) == 2
    assert set(active_children()) <= children
    assert kind.left_behind() <= before


def test_only_its_own_copy_is_read(kind: Kind, photos: Path, tmp_path: Path, tiny: ImageSamples) -> None:
    check_only_its_copy_is_read(kind.backend, tiny, files_of(photos)[:2], tmp_path)


def test_all_its_arguments_take_effect(kind: Kind, tiny: ImageSamples) -> None:
    arguments = {"batch_size": 2, "shuffle": True, "drop_last": True, "keep_memory": False}
    with built(kind.backend, tiny, **arguments) as found:
        assert (found.configured, found.batch_size, found.samples_per_epoch) == (arguments.keys(), 2, 40)


def test_the_code_of_a_loader_without_batches_gives_samples(
    kind: Kind, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LITDATA_DISABLE_VERSION_CHECK", "1")
    dataset = ImageFolder(str(photos), imagenet_eval())
    program: dict[str, Any] = {"dataset": dataset}
    exec("\n".join(kind.backend.code({"batch_size": None, "num_workers": 0}, [])), program)
    assert sorted(int(label) for _, label in program["loader"]) == sorted(dataset.targets)


def test_the_code_that_a_report_shows_gives_the_images_of_the_dataset(
    kind: Kind, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LITDATA_DISABLE_VERSION_CHECK", "1")
    dataset, before = ImageFolder(str(photos), imagenet_eval()), kind.left_behind()
    for shuffle in (False, True):
        program: dict[str, Any] = {"dataset": dataset}
        arguments = {"batch_size": 4, "num_workers": 0, "shuffle": shuffle, "drop_last": True}
        exec("\n".join(kind.backend.code(arguments, ["# a comment"])), program)
        found = [*program["loader"]]
        own_labels = torch.cat([own for _, own in found])
        assert sorted(own_labels.tolist()) == sorted(dataset.targets)
        if not shuffle:
            assert torch.equal(torch.cat([image for image, _ in found]), torch.stack([image for image, _ in dataset]))
    for path in kind.left_behind() - before:
        if "filelock" in path:
            Path(path).unlink()  # which the library leaves


def test_the_page_shows_the_code_that_a_report_shows(kind: Kind) -> None:
    config = {"loader": kind.name, "num_workers": 2, "batch_size": 32, "shuffle": True, "drop_last": True}
    assert packed(f"```python\n{python_program(config, {}, None)}```") in packed(
        (PAGES / f"{kind.name}.md").read_text(encoding="utf-8")
    )
