"""What holds for both loaders of TensorFlow, `tf_data` and `tf_queue`."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from loader_batches import built, drawn, files_of, images, wait_for  # noqa: E402
from packed_text import packed  # noqa: E402
from PIL import Image  # noqa: E402
from torchvision.datasets.folder import pil_loader  # noqa: E402

from loaderbench.datasets.image_samples import TRANSFORMS, ImageSamples  # noqa: E402
from loaderbench.errors import BadImageError  # noqa: E402
from loaderbench.imagenet import STD  # noqa: E402
from loaderbench.loaders import LoaderBackend, TorchLoader  # noqa: E402
from loaderbench.loaders.tf_data import TfData  # noqa: E402
from loaderbench.loaders.tf_queue import TfQueue  # noqa: E402

if not TfData().is_installed():  # importing it here would end the process as soon as a test imports Triton
    pytest.skip("TensorFlow is not installed", allow_module_level=True)

PAGES = Path(__file__).parents[2] / "docs" / "reference" / "loaders"
NAMES = {"tf_data": TfData(), "tf_queue": TfQueue()}
each_backend = pytest.mark.parametrize("backend", [pytest.param(found, id=name) for name, found in NAMES.items()])


def steps_of_255(one: Any, other: Any) -> Any:
    """How far two normalized images are apart."""
    return (one - other).abs() * 255 * torch.tensor(STD).view(3, 1, 1)


def alive(thread: int) -> bool:
    return Path(f"/proc/self/task/{thread}").exists()


def cpu_ns(thread: int) -> int:
    return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0])


@each_backend
@pytest.mark.parametrize("threads", [1, 3])
def test_batches_are_those_of_torch_to_a_step_of_255_in_the_order_of_the_files(
    backend: LoaderBackend, threads: int, photos: Path
) -> None:
    files = files_of(photos)[:10]
    theirs, their_labels = drawn(TorchLoader(), images(files), 6, batch_size=4, num_workers=0)
    found, labels = drawn(backend, images(files), 6, batch_size=4, threads=threads)
    assert (found.dtype, labels.dtype, found.shape) == (torch.float32, torch.int64, (24, 3, 224, 224))
    assert labels.tolist() == their_labels.tolist() == [*range(10), *range(10), *range(4)]
    apart = steps_of_255(found, theirs)
    assert float(apart.max()) < 1.01
    assert float(apart.mean()) < 0.35


@each_backend
def test_what_is_not_normalized_is_uint8(backend: LoaderBackend, photos: Path) -> None:
    source = images(files_of(photos)[:8], normalizes=False)
    theirs, _ = drawn(TorchLoader(), source, 2, batch_size=4, num_workers=0)
    found, _ = drawn(backend, source, 2, batch_size=4)
    assert (found.dtype, found.shape) == (torch.uint8, theirs.shape)
    assert int((found.short() - theirs.short()).abs().max()) == 1


@pytest.fixture(scope="module")
def crops_of_torch(photos: Path) -> Any:
    return drawn(TorchLoader(), images(files_of(photos), "imagenet_train"), 15, batch_size=24, num_workers=0)[0]


@each_backend
def test_random_crops_have_the_values_of_torch_s(backend: LoaderBackend, crops_of_torch: Any, photos: Path) -> None:
    source = images(files_of(photos), "imagenet_train")
    found, labels = drawn(backend, source, 15, batch_size=24, threads=2, shuffle=True)
    assert found.shape == crops_of_torch.shape
    assert {*Counter(labels.tolist()).values()} <= {14, 15, 16}  # threads of a queue overtake each other
    means, their_means = (of.mean(dim=(0, 2, 3)).tolist() for of in (found, crops_of_torch))
    stds, their_stds = (of.std(dim=(0, 2, 3)).tolist() for of in (found, crops_of_torch))
    assert means == pytest.approx(their_means, abs=0.06)
    assert stds == pytest.approx(their_stds, rel=0.04)
    assert len(found.flatten(1).unique(dim=0)) == 360


@each_backend
@pytest.mark.parametrize("transform", ["imagenet_train_v2", "imagenet_train_scaled"])
def test_recipes_that_differ_in_speed_alone_are_one(backend: LoaderBackend, transform: str, photos: Path) -> None:
    usual, other = (
        drawn(backend, images(files_of(photos), name), 1, batch_size=4) for name in ("imagenet_train", transform)
    )
    assert torch.equal(usual[0], other[0])


@each_backend
def test_half_of_the_images_are_flipped(backend: LoaderBackend, tmp_path: Path) -> None:
    slope = Image.linear_gradient("L").rotate(90).convert("RGB")  # bright at one side
    slope.save(tmp_path / "slope.png")
    found, _ = drawn(backend, images([(str(tmp_path / "slope.png"), 0)], "imagenet_train"), 50, batch_size=4)
    rises = (found[..., -20:].mean(dim=(1, 2, 3)) > found[..., :20].mean(dim=(1, 2, 3))).float()
    assert 0.35 < float(rises.mean()) < 0.65


@each_backend
def test_shuffled_every_sample_comes_once_an_epoch(backend: LoaderBackend, photos: Path) -> None:
    _, labels = drawn(backend, images(files_of(photos)[:12]), 9, batch_size=4, shuffle=True, threads=1)
    epochs = labels.view(3, 12).tolist()
    assert [sorted(epoch) for epoch in epochs] == [list(range(12))] * 3
    assert len({tuple(epoch) for epoch in [*epochs, list(range(12))]}) == 4


@each_backend
def test_one_thread_draws_the_same_with_the_same_seed(backend: LoaderBackend, photos: Path) -> None:
    source = images(files_of(photos), "imagenet_train")
    arguments = {"batch_size": 6, "shuffle": True, "threads": 1}
    first, again, other = (drawn(backend, source, 6, **arguments, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[1], other[1])


@each_backend
@pytest.mark.parametrize("transform", ["imagenet_eval", "imagenet_train"])
@pytest.mark.parametrize(
    ("mode", "ending"),
    [("L", "jpg"), ("CMYK", "jpg"), ("RGB", "png"), ("L", "png"), ("P", "png"), ("RGB", "bmp"), ("P", "gif")],
)
def test_images_of_other_formats_and_colors_become_rgb(
    backend: LoaderBackend, mode: str, ending: str, transform: str, photos: Path, tmp_path: Path
) -> None:
    file = tmp_path / f"image.{ending}"
    Image.open(files_of(photos)[0][0]).resize((300, 280)).convert(mode).save(file)
    found, _ = drawn(backend, images([(str(file), 0)], transform), 1)
    assert found.shape == (1, 3, 224, 224)
    if transform == "imagenet_eval":
        theirs, _ = drawn(TorchLoader(), images([(str(file), 0)]), 1, num_workers=0)
        assert float(steps_of_255(found, theirs).mean()) < 1


@each_backend
@pytest.mark.parametrize("transform", ["imagenet_eval", "imagenet_train"])
@pytest.mark.parametrize("size", [(40, 900), (900, 40), (225, 300), (1, 1), (257, 257)])
def test_images_of_any_size_become_crops_of_one_size(
    backend: LoaderBackend, size: tuple[int, int], transform: str, photos: Path, tmp_path: Path
) -> None:
    file = tmp_path / "image.png"
    Image.open(files_of(photos)[0][0]).convert("RGB").resize(size).save(file)
    found, _ = drawn(backend, images([(str(file), 0)], transform), 1)
    theirs, _ = drawn(TorchLoader(), images([(str(file), 0)], transform), 1, num_workers=0)
    assert found.shape == theirs.shape
    if transform == "imagenet_eval":
        assert float(steps_of_255(found, theirs).max()) < 1.01


@each_backend
@pytest.mark.parametrize("threads", [1, 3])
def test_the_threads_that_load_are_known_and_have_ended_after_close(
    backend: LoaderBackend, threads: int, photos: Path
) -> None:
    before = set(threading.enumerate())
    with built(backend, images(files_of(photos)), batch_size=8, threads=threads, shuffle=True) as found:
        assert (found.worker_pids(), found.loading_threads()) == ([], [])
        iterator = iter(found.iterable)
        next(iterator)
        loading = found.loading_threads()
        assert len(loading) == threads
        began_ns = {int(path.name): cpu_ns(int(path.name)) for path in Path("/proc/self/task").iterdir()}
        list(islice(iterator, 40))
        spent_ns = {thread: cpu_ns(thread) - ns for thread, ns in began_ns.items() if alive(thread)}
        others_ns = sum(ns for thread, ns in spent_ns.items() if thread not in loading)
        assert sum(spent_ns[thread] for thread in loading) > 4 * others_ns
        assert min(spent_ns[thread] for thread in loading) > 0
    assert found.loading_threads() == []
    assert set(threading.enumerate()) <= before
    wait_for(lambda: not any(map(alive, loading)))


@each_backend
@pytest.mark.filterwarnings("error")
def test_it_closes_before_the_first_batch_after_some_and_twice_and_says_nothing(
    backend: LoaderBackend, photos: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    before = set(threading.enumerate())
    for taken in (None, 0, 5):
        found = backend.build(images(files_of(photos)), {"batch_size": 2, "threads": 2}, seed=0)
        iterator = None if taken is None else iter(found.iterable)
        assert len(list(islice(iterator or (), taken))) == (taken or 0)
        found.close(iterator)
        found.close()
        assert set(threading.enumerate()) <= before
        assert list(iterator or ()) == []
    assert (caplog.records, capfd.readouterr()) == ([], ("", ""))


@each_backend
def test_batches_end_when_their_loader_is_closed_in_the_middle(backend: LoaderBackend, photos: Path) -> None:
    with built(backend, images(files_of(photos)), batch_size=2, threads=2) as found:
        iterator = iter(found.iterable)
        next(iterator)
        found.close()
        assert list(iterator) == []


@each_backend
def test_begun_again_it_starts_with_the_first_batch(backend: LoaderBackend, photos: Path) -> None:
    with built(backend, images(files_of(photos)), batch_size=4, threads=2) as found:
        for _ in range(2):
            labels = [labels.tolist() for _, labels in islice(found.iterable, 2)]
            assert labels == [[0, 1, 2, 3], [4, 5, 6, 7]]


def truncated(whole: bytes) -> bytes:
    return whole[: len(whole) // 2]


@each_backend
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (truncated, "InvalidArgumentError: jpeg::Uncompress failed. Invalid JPEG data"),
        (lambda _: b"no image", "InvalidArgumentError: Unknown image file format."),
        (lambda _: b"", "InvalidArgumentError: "),
        (None, "NotFoundError: "),
    ],
    ids=["truncated", "no image", "empty", "missing"],
)
def test_an_image_that_cannot_be_read_is_named_and_all_threads_end(
    backend: LoaderBackend, content: Callable[[bytes], bytes] | None, said: str, photos: Path, tmp_path: Path
) -> None:
    before = set(threading.enumerate())
    files, bad = files_of(photos), tmp_path / "bad image.jpg"
    if content is not None:
        bad.write_bytes(content(Path(files[0][0]).read_bytes()))
    files[13] = (str(bad), 13)
    with built(backend, images(files), batch_size=4, threads=2, queued=1) as found:
        iterator, loading = iter(found.iterable), set[int]()
        watched = (loading.update(found.loading_threads()) for _ in iterator)
        with pytest.raises(BadImageError) as raised:
            list(watched)
        assert str(raised.value).startswith(f"{bad}: {said}")
        assert not {"[[", "{{", "[Op"} & {*str(raised.value).split()}
        assert set(threading.enumerate()) <= before
        wait_for(lambda: not any(map(alive, loading)))
        assert list(iterator) == []


@each_backend
@pytest.mark.parametrize(
    ("source", "said"),
    [
        (images([("a.jpg", 0)], "to_tensor"), "loader {} does not support transform: to_tensor; use imagenet_eval or"),
        (ImageSamples([("a.jpg", 0)], pil_loader, TRANSFORMS["imagenet_eval"]()), "loader {} decodes files by itself"),
        (torch.arange(3), "it needs an image folder with a named transform, got Tensor"),
    ],
)
def test_what_it_cannot_load_is_refused(backend: Any, source: Any, said: str) -> None:
    name = next(name for name, found in NAMES.items() if found is backend)
    with pytest.raises(TypeError, match=said.format(name)):
        backend.build(source, {}, seed=0)


@each_backend
def test_an_empty_dataset_is_refused(backend: LoaderBackend) -> None:
    with pytest.raises(ValueError, match="the dataset is empty"):
        backend.build(images([]), {}, seed=0)


@each_backend
def test_only_arguments_of_its_own_take_effect(backend: LoaderBackend, photos: Path) -> None:
    with built(backend, images(files_of(photos)), batch_size=2, nothing=1) as found:
        assert (found.configured, found.batch_size, found.samples_per_epoch) == ({"batch_size"}, 2, 24)


@each_backend
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_code_that_a_report_shows_gives_epochs_of_batches(
    backend: LoaderBackend, shuffle: bool, crops_of_torch: Any, photos: Path
) -> None:
    before, source = set(threading.enumerate()), images(files_of(photos)[:22])
    for drop_last, sizes in {True: [8, 8], False: [8, 8, 6]}.items():
        program: dict[str, Any] = {"dataset": source}
        arguments = {"batch_size": 8, "threads": 1, "queued": 2, "shuffle": shuffle, "drop_last": drop_last}
        exec("\n".join(backend.code(arguments, ["# a comment"])), program)
        for _ in range(2):
            pixels, labels = zip(*program["loader"], strict=True)
            assert [len(part) for part in pixels] == sizes
            assert (pixels[0].shape[1:], pixels[0].dtype, labels[0].dtype) == (
                (3, 224, 224),
                torch.float32,
                torch.int64,
            )
            numbers = torch.cat(labels).tolist()
            assert (numbers == list(range(len(numbers)))) is not shuffle
            assert len(set(numbers)) == len(numbers)
            theirs = crops_of_torch.view(15, 24, -1)[:, numbers]  # of the same photos
            assert float(torch.cat(pixels).mean()) == pytest.approx(float(theirs.mean()), abs=0.4)
            assert float(torch.cat(pixels).std()) == pytest.approx(float(theirs.std()), rel=0.3)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_this_code(name: str) -> None:
    code = NAMES[name].code({"batch_size": 32, "threads": 2, "shuffle": True, "drop_last": True}, [])
    shown = code[1:] if name == "tf_queue" else code  # its page refers to the other one
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert packed("```python\n" + "\n".join(shown) + "\n```") in packed(page)
