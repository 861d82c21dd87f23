"""Loaders are compared only if they give the same batches: each way to differ is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from PIL import Image

from loaderbench.datasets import Built, DatasetOrder, ImageFolder
from loaderbench.datasets.photos import generate_photos
from loaderbench.loaders import AXIS, LOADER_BACKENDS, Batches, LoaderBackend
from loaderbench.loaders.torch_loader import TorchLoader
from loaderbench.options import Check
from loaderbench.records import Parity
from loaderbench.runner import parity
from loaderbench.runner.parity import ParityOrder, _differences, compare_loaders
from loaderbench.session.sweep import why_refused

Change = Callable[[torch.Tensor, torch.Tensor], Any]


class Changed(LoaderBackend):
    """torch's batches of images and labels, changed."""

    arguments: ClassVar[Mapping[str, Check]] = TorchLoader.arguments

    def __init__(self, change: Change) -> None:
        self._change = change

    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        made = TorchLoader().build(source, arguments, seed=seed)

        def batches() -> Iterator[Any]:
            for images, labels in made.iterable:
                yield self._change(images, labels)

        return Batches(batches(), samples_per_epoch=made.samples_per_epoch)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[str, int], ...]:
    """Photos of a quarter of their usual width: most of a comparison is decoding and resizing."""
    root = tmp_path_factory.mktemp("photos")
    generate_photos(root, images=32, classes=4)
    files = sorted(root.rglob("*.jpg"))
    for file in files:
        Image.open(file).reduce(4).save(file)
    return tuple((str(file), number % 4) for number, file in enumerate(files))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer samples, in two batches still: comparing all of them takes two seconds of CPU time."""
    monkeypatch.setattr(parity, "BATCH_SIZE", 8)
    monkeypatch.setattr(parity, "SAMPLES", 16)


def compared(
    samples: tuple[tuple[str, int], ...], name: str, transform: str = "imagenet_eval", **further: int
) -> Parity:
    """A loader compared with torch's, here."""
    dataset = ImageFolder(transform=transform)
    orders = [DatasetOrder(samples, {AXIS: loader, "num_workers": 0, **further}, Path()) for loader in (name, "torch")]
    return compare_loaders(ParityOrder(dataset, *orders, tuple(LOADER_BACKENDS.values())), here)


def here(target: Callable[..., None], *arguments: object, timeout_s: float) -> Any:
    ours, theirs = Pipe()
    target(theirs, *arguments)
    return ours.recv()


def changed(monkeypatch: pytest.MonkeyPatch, change: Change) -> None:
    monkeypatch.setitem(LOADER_BACKENDS, "changed", Changed(change))


@pytest.mark.parametrize("transform", ["imagenet_eval", "imagenet_train"])
def test_threads_give_the_batches_of_torch(samples: tuple[tuple[str, int], ...], transform: str) -> None:
    found = compared(samples, "threads", transform)
    assert (found.loader, found.against, found.samples, found.refused) == ("threads", "torch", 64, "")
    if transform == "imagenet_eval":
        assert found.difference == 0.0
    else:
        assert found.difference is None
        assert found.not_measured == {"difference": "the transform draws different values each time"}


@pytest.mark.usefixtures("few")
def test_the_number_of_ranks_is_no_argument_of_a_loader(samples: tuple[tuple[str, int], ...]) -> None:
    assert compared(samples, "threads", ranks=2).difference == 0.0


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda images, labels: [images, labels.flip(0)], "labels: "),
        (
            lambda images, labels: [images[:, :, :200], labels],
            "shape (3, 200, 224) of a sample instead of (3, 224, 224)",
        ),
        (lambda images, labels: [images.half(), labels], "type float16 instead of float32"),
        (lambda images, labels: [images, labels.int()], "type int32 instead of int64"),
        (lambda images, _: [images], "1 tensors in a batch instead of 2"),
        (lambda images, labels: [images * 0.226 + 0.45, labels], "values "),
        (lambda images, labels: [images + 0.5, labels], "values "),
    ],
)
def test_batches_that_hold_something_else_are_refused(
    samples: tuple[tuple[str, int], ...], change: Change, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(monkeypatch, change)
    found = compared(samples, "changed")
    assert found.refused.startswith(said)
    assert found.not_measured == {"difference": found.refused}
    refused = why_refused({AXIS: "changed"}, [found])
    assert refused == f"batches of changed differ from those of torch: {found.refused}"
    assert why_refused({AXIS: "torch"}, [found]) is None


@pytest.mark.usefixtures("few")
def test_another_decoder_differs_a_little_and_is_compared(
    samples: tuple[tuple[str, int], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(monkeypatch, lambda images, labels: {"a": images + 0.01 * torch.randn(images.shape), "b": labels})
    found = compared(samples, "changed")
    assert found.refused == ""
    assert found.difference == pytest.approx(0.008, rel=0.3)  # the mean absolute value of that noise, by a spread of 1


@pytest.mark.usefixtures("few")
def test_an_epoch_of_another_length_is_refused(
    samples: tuple[tuple[str, int], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Half(Changed):
        def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
            return Batches(super().build(source, arguments, seed=seed).iterable, samples_per_epoch=16)

    monkeypatch.setitem(LOADER_BACKENDS, "half", Half(lambda images, labels: [images, labels]))
    assert compared(samples, "half").refused == "an epoch has 16 samples instead of 32"


def test_a_loader_that_fails_is_not_compared_and_not_refused(
    samples: tuple[tuple[str, int], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(images: torch.Tensor, labels: torch.Tensor) -> Any:
        raise RuntimeError("no codec")

    changed(monkeypatch, fails)
    found = compared(samples, "changed")
    assert (found.samples, found.refused) == (None, "")
    assert found.not_measured["samples"] == "RuntimeError: no codec"


class Drawn:
    """Samples with a random label in addition to their own, and values that may be missing."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        values = torch.linspace(0, 1, 8)
        values[index % 8] = float("nan")
        return values, index, int(torch.randint(4, ()))


def of_target(name: str, change: Change | None = None) -> Parity:
    class FromTarget(ImageFolder):
        def build(self, order: DatasetOrder) -> Built:
            return Built(Drawn(), dict(order.arguments), frozenset())

    orders = [DatasetOrder((), {AXIS: loader, "num_workers": 0}, Path()) for loader in (name, "torch")]
    return compare_loaders(ParityOrder(FromTarget(), *orders, tuple(LOADER_BACKENDS.values())), here)


def test_random_labels_and_missing_values_do_not_differ() -> None:
    found = of_target("threads")
    assert (found.refused, found.samples) == ("", 64)
    assert found.not_measured == {"difference": "the transform draws different values each time"}


def without(images: torch.Tensor, columns: int) -> torch.Tensor:
    images = images.clone()
    images[..., :columns] = float("nan")
    return images


@pytest.mark.parametrize(
    ("transform", "columns", "said"),
    [
        ("imagenet_eval", 112, "NaN in 4,816,896 values of 9,633,792 in only one loader"),
        ("imagenet_eval", 224, "NaN in 9,633,792 values of 9,633,792 in only one loader"),
    ],
)
def test_values_that_only_another_loader_lacks_are_refused(
    samples: tuple[tuple[str, int], ...], monkeypatch: pytest.MonkeyPatch, transform: str, columns: int, said: str
) -> None:
    changed(monkeypatch, lambda images, labels: [without(images, columns), labels])
    assert compared(samples, "changed", transform).refused == said


def test_where_values_are_missing_at_random_a_loader_without_any_is_refused() -> None:
    one, other = torch.rand(2, 64, 8)
    other[torch.rand(64, 8) < 0.1] = float("nan")
    again = other.roll(1)
    assert [*_differences([one], [other], [again])] == []
    assert [*_differences([one * float("nan")], [other], [again])] == ["all values are NaN"]
