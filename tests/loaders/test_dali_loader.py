"""The backend `dali` gives what torch and torchvision give, but for the rounding of pixels, and ends its threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nvidia.dali.fn")
torch = pytest.importorskip("torch")
from packed_text import packed  # noqa: E402
from PIL import Image  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from loaderbench.datasets import dali as dali_decoder  # noqa: E402
from loaderbench.datasets.decoders import DECODERS  # noqa: E402
from loaderbench.datasets.image_samples import TRANSFORMS, ImageSamples, Recipe  # noqa: E402
from loaderbench.diagnosis.failures import classify  # noqa: E402
from loaderbench.errors import BadImageError  # noqa: E402
from loaderbench.imagenet import MEAN, STD  # noqa: E402
from loaderbench.loaders import Batches, LoaderBackend  # noqa: E402
from loaderbench.loaders.dali_loader import OPERATIONS, Dali  # noqa: E402
from loaderbench.loaders.torch_loader import TorchLoader  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "loaders" / "dali.md"
DALI, TORCH = Dali(), TorchLoader()
LEAST_PSNR_DB = 50.0
"""Of resized images: at most one of 255 steps apart, where Pillow rounds twice and DALI once."""

on_cpu = pytest.mark.skipif(torch.cuda.is_available(), reason="here DALI decodes on the GPU")
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

Samples = list[tuple[str, int]]


@pytest.fixture(scope="module")
def samples(photos: Path) -> Samples:
    """24 photos, each with a label of its own."""
    return [(str(path), label) for label, path in enumerate(sorted(photos.rglob("*.jpg")))]


def images(samples: Samples, transform: str = "imagenet_eval", *, normalizes: bool = True) -> ImageSamples:
    decoder = DECODERS["pillow_lazy" if transform == "imagenet_train_scaled" else "pillow"]
    return ImageSamples(samples, decoder, TRANSFORMS[transform](normalizes), Recipe(transform, normalizes))


@contextmanager
def built(source: Any, backend: LoaderBackend = DALI, *, seed: int = 3, **arguments: Any) -> Iterator[Batches]:
    batches = backend.build(source, arguments, seed=seed)
    iterator = iter(batches.iterable)
    try:
        yield Batches(iterator) if backend is TORCH else batches
    finally:
        batches.close(iterator)


def drawn(source: Any, batches: int, backend: LoaderBackend = DALI, **arguments: Any) -> tuple[Any, Any]:
    """The images and the labels of the first batches, put together."""
    with built(source, backend, **arguments) as found:
        made = list(islice(found.iterable, batches))
    pixels, labels = (torch.cat(parts) for parts in zip(*made, strict=True))
    return pixels.cpu(), labels


def psnr_db(one: Any, other: Any) -> float:
    error = float(((one.double() - other.double()) ** 2).mean())
    return float("inf") if error == 0 else float(10 * np.log10(255**2 / error))


def threads_of_dali() -> set[str]:
    names = {thread.name: (thread / "comm").read_text() for thread in Path("/proc/self/task").iterdir()}
    return {thread for thread, name in names.items() if "DALI" in name or "Prefetch" in name}


@on_cpu
@pytest.mark.parametrize("normalizes", [True, False])
def test_images_and_labels_are_those_of_torch_in_its_order(samples: Samples, normalizes: bool) -> None:
    source = images(samples, normalizes=normalizes)
    theirs, their_labels = drawn(source, 5, TORCH, batch_size=8)
    ours, labels = drawn(source, 5, batch_size=8, threads=2)
    assert (ours.shape, ours.dtype) == ((40, 3, 224, 224), torch.float32 if normalizes else torch.uint8)
    assert (labels.dtype, labels.tolist()) == (torch.int64, [*range(24), *range(16)])
    assert torch.equal(labels, their_labels)
    if normalizes:
        mean, std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))
        ours, theirs = (255 * (pixels * std + mean) for pixels in (ours, theirs))
    assert (ours.double() - theirs.double()).abs().max() < 1.001
    assert psnr_db(ours, theirs) > LEAST_PSNR_DB


@on_cpu
@pytest.mark.parametrize("width", [224, 225, 257, 341, 343, 600, 601, 603])
def test_the_center_is_where_torchvision_crops(tmp_path: Path, width: int) -> None:
    """A sharp edge that is half a pixel away shows."""
    for name, size in {"wide": (width, 180), "high": (180, width)}.items():
        pixels = np.zeros((size[1], size[0], 3), np.uint8)
        pixels[size[1] // 2 :, :, 0] = pixels[:, size[0] // 2 :, 1] = 255
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
        source = images([(str(tmp_path / f"{name}.png"), 0)], normalizes=False)
        assert (drawn(source, 1)[0].int() - source[0][0][None].int()).abs().max() <= 1


@pytest.mark.parametrize("transform", ["imagenet_train", "imagenet_train_v2", "imagenet_train_scaled"])
def test_random_crops_have_the_mean_and_spread_of_torchs(samples: Samples, transform: str) -> None:
    torch.manual_seed(0)
    ours, theirs = (
        drawn(images(samples, transform), 20, backend, batch_size=24, shuffle=True)[0] for backend in (DALI, TORCH)
    )
    assert (ours.shape, ours.dtype) == ((480, 3, 224, 224), torch.float32)
    assert abs(float(ours.mean() - theirs.mean())) < 0.15 * float(theirs.std())
    assert float(ours.std()) == pytest.approx(float(theirs.std()), rel=0.1)
    assert drawn(images(samples, transform, normalizes=False), 1)[0].dtype is torch.uint8


def test_random_crops_are_as_large_and_flipped_as_often_as_torchs(tmp_path: Path) -> None:
    """Colors are coordinates: the difference across a crop is the share of the image that it covers."""
    torch.manual_seed(0)
    down, across = np.meshgrid(np.linspace(0, 255, 300), np.linspace(0, 255, 400), indexing="ij")
    Image.fromarray(np.stack([across, down, 0 * down], axis=-1).astype(np.uint8)).save(tmp_path / "a.png")
    found = {}
    for name, backend in {"dali": DALI, "torch": TORCH}.items():
        source = images([(str(tmp_path / "a.png"), 0)], "imagenet_train", normalizes=False)
        pixels = drawn(source, 15, backend, batch_size=64)[0].double() / 255
        wide = pixels[:, 0, 112, -1] - pixels[:, 0, 112, 0]
        high = pixels[:, 1, -1, 112] - pixels[:, 1, 0, 112]
        area, aspect = wide.abs() * high, (4 * wide.abs() / (3 * high)).log()
        flipped = (wide < 0).double()
        facts = [area.mean(), area.min(), area.max(), flipped.mean(), aspect.mean(), aspect.std()]
        found[name] = [float(fact) for fact in facts]
    assert found["dali"] == pytest.approx(found["torch"], abs=0.06)


def test_shuffled_every_sample_comes_once_an_epoch_and_again_with_the_same_seed(samples: Samples) -> None:
    source = images(samples, "imagenet_train")
    pixels, labels = drawn(source, 9, batch_size=8, threads=2, shuffle=True)
    epochs = [labels[first : first + 24].tolist() for first in (0, 24, 48)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(24))] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3
    again, same_labels = drawn(source, 9, batch_size=8, threads=1, queued=4, shuffle=True)
    assert torch.equal(labels, same_labels)
    assert torch.equal(pixels, again)
    assert drawn(source, 9, batch_size=8, shuffle=True, seed=4)[1].tolist() != labels.tolist()


def test_batches_stay_what_they_were_while_others_are_made_and_after_the_end(samples: Samples) -> None:
    with built(images(samples), batch_size=4, threads=2, queued=1) as found:
        kept = [(pixels, pixels.clone()) for pixels, _ in islice(found.iterable, 30)]
    assert all(torch.equal(pixels, copy) for pixels, copy in kept)
    assert len({pixels.data_ptr() for pixels, _ in kept}) == 30


def save(folder: Path, name: str, image: Image.Image, **how: Any) -> str:
    image.save(folder / name, **how)
    return str(folder / name)


@on_cpu
def test_pictures_of_other_kinds_become_rgb_as_pillow_makes_them(samples: Samples, tmp_path: Path) -> None:
    with Image.open(samples[0][0]) as photo:
        rgb = photo.convert("RGB").resize((320, 240))
    turned = Image.Exif()
    turned[0x0112] = 6  # orientation: a viewer turns it by a quarter
    files = [
        *(save(tmp_path, f"{mode}.jpg", rgb.convert(mode), quality=90) for mode in ("L", "CMYK")),
        *(save(tmp_path, f"{mode}.png", rgb.convert(mode)) for mode in ("RGB", "RGBA", "L", "LA", "P", "1")),
        save(tmp_path, "turned.jpg", rgb, quality=90, exif=turned),
        save(tmp_path, "progressive.jpg", rgb, quality=90, progressive=True),
        *(save(tmp_path, f"a.{kind}", rgb) for kind in ("bmp", "tif", "ppm", "webp")),
    ]
    for transform, most in {"to_tensor": 0, "imagenet_eval": 1}.items():
        source = images([(path, 0) for path in files], transform, normalizes=False)
        pixels, _ = drawn(source, 1, batch_size=len(files), threads=2)
        for index, path in enumerate(files):
            assert (pixels[index].int() - source[index][0].int()).abs().max() <= most, (transform, path)


def test_to_tensor_takes_images_of_one_size_alone(samples: Samples, tmp_path: Path) -> None:
    files = [(save(tmp_path, f"{side}.png", Image.new("RGB", (side, 30))), 0) for side in (40, 40, 41)]
    pixels, _ = drawn(images(files[:2], "to_tensor"), 1, batch_size=2)
    assert (pixels.shape, pixels.dtype, float(pixels.max())) == ((2, 3, 30, 40), torch.float32, 0.0)
    with pytest.raises(RuntimeError) as raised:
        drawn(images(files, "to_tensor"), 1, batch_size=3)
    assert classify(f"RuntimeError: {raised.value}").kind == "collate"


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("transform", ["imagenet_eval", "imagenet_train"])
@pytest.mark.parametrize("kind", ["half", "header", "text", "empty", "missing", "gif", "png"])
def test_a_bad_image_is_named_in_its_turn(
    samples: Samples, tmp_path: Path, kind: str, transform: str, shuffle: bool
) -> None:
    whole, bad = Path(samples[0][0]).read_bytes(), tmp_path / "bad.jpg"
    if kind in ("half", "header", "text", "empty"):
        bad.write_bytes(
            {"half": whole[: len(whole) // 2], "header": whole[:200], "text": b"no JPEG", "empty": b""}[kind]
        )
    elif kind == "gif":
        Image.new("RGB", (300, 300)).save(bad, format="GIF")
    elif kind == "png":
        Image.fromarray(np.random.default_rng(0).integers(0, 255, (300, 300, 3), np.uint8)).save(bad, format="PNG")
        bad.write_bytes(bad.read_bytes()[:9000])
    source = images([*samples[:13], (str(bad), 13), *samples[14:]], transform)
    before = threads_of_dali()
    with built(source, batch_size=4, threads=2, shuffle=shuffle) as found:
        seen = list[int]()
        with pytest.raises(BadImageError, match=f"^{bad}: ") as raised:
            seen.extend(label for _, labels in islice(found.iterable, 60) for label in labels.tolist())
        assert threads_of_dali() == before
    if kind != "half" or transform == "imagenet_eval":  # a crop may leave out what is missing of a truncated JPEG
        assert 13 not in seen
        assert len(set(seen)) == len(seen)
    if not shuffle:
        assert seen[:12] == list(range(12))
    failure = classify(f"{type(raised.value).__name__}: {raised.value}")
    assert failure.kind == ("missing" if kind == "missing" else "bad_image")
    assert ("DALI cannot decode it" in str(raised.value)) is (kind == "gif")


@on_cpu
@pytest.mark.filterwarnings("error")
def test_it_is_known_which_threads_load_until_they_have_ended(samples: Samples) -> None:
    before = threads_of_dali()
    found = DALI.build(images(samples), {"batch_size": 4, "threads": 3}, seed=0)
    iterator = iter(found.iterable)
    next(iterator)
    loading = found.loading_threads()
    assert len(loading) == 3
    assert {str(thread) for thread in loading} < threads_of_dali() - before
    assert found.worker_pids() == []
    found.close(iterator)
    assert (found.loading_threads(), threads_of_dali()) == ([], before)
    assert next(iterator, None) is None


@pytest.mark.parametrize("taken", [None, 0, 5])
@pytest.mark.filterwarnings("error")
def test_it_closes_before_the_first_batch_after_some_and_twice(samples: Samples, taken: int | None) -> None:
    before = threads_of_dali()
    found = DALI.build(images(samples), {"batch_size": 4, "threads": 2}, seed=0)
    iterator = None if taken is None else iter(found.iterable)
    assert len(list(islice(iterator or (), taken))) == (taken or 0)
    found.close(iterator)
    found.close()
    assert threads_of_dali() == before
    assert list(found.iterable) == []


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        (TensorDataset(torch.zeros(3)), TypeError, "loader dali decodes files by itself"),
        (ImageSamples([("a.jpg", 0)], str, str), TypeError, "it needs an image folder with a named transform"),
        (
            ImageSamples([("a.jpg", 0)], str, str, Recipe("own", True)),
            TypeError,
            "loader dali does not support transform: own",
        ),
        (ImageSamples([], str, str, Recipe("imagenet_eval", True)), ValueError, "the dataset is empty"),
    ],
)
def test_what_it_cannot_read_is_refused(source: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        DALI.build(source, {}, seed=0)


def test_it_has_operations_for_every_transform_that_has_a_name() -> None:
    assert set(OPERATIONS) == set(TRANSFORMS)


def test_it_is_installed_where_the_decoder_of_that_name_is() -> None:
    assert DALI.is_installed() is dali_decoder.is_installed() is True
    assert DALI.install == dali_decoder.INSTALL


def test_it_says_how_far_it_reads_ahead_and_which_arguments_take_effect(samples: Samples) -> None:
    found = DALI.prefetch({"batch_size": 8, "threads": 4, "queued": None})
    assert (found.workers, found.batch_size, found.batches, found.shares_memory) == (4, 8, 2, False)
    with built(images(samples), batch_size=8, queued=3, nothing=1) as batches:
        assert (batches.ahead, batches.batch_size, batches.samples_per_epoch) == (3, 8, 24)
        assert batches.configured == {"batch_size", "queued"}
        assert not batches.is_divided


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_code_that_a_report_shows_gives_epochs_of_batches(samples: Samples, shuffle: bool) -> None:
    source = images(samples[:22], "imagenet_train")
    arguments = {"batch_size": 8, "threads": 2, "queued": 2, "shuffle": shuffle}
    for drop_last, sizes in {True: [8, 8], False: [8, 8, 6]}.items():
        program: dict[str, Any] = {"dataset": source}
        exec("\n".join(DALI.code({**arguments, "drop_last": drop_last}, ["# a comment"])), program)
        for _ in range(2):
            epoch = list(program["loader"])
            labels = torch.cat([label for _, label in epoch]).tolist()
            assert [len(pixels) for pixels, _ in epoch] == sizes
            assert (epoch[0][0].shape[1:], epoch[0][0].dtype) == ((3, 224, 224), torch.float32)
            assert (labels == list(range(len(labels)))) is not shuffle
            assert len(set(labels)) == len(labels)


def test_the_page_shows_this_code() -> None:
    code = DALI.code({"batch_size": 32, "threads": 2, "shuffle": True, "drop_last": True}, [])
    assert packed("```python\n" + "\n".join(code) + "\n```") in packed(PAGE.read_text(encoding="utf-8"))


@on_gpu
@pytest.mark.gpu
def test_on_a_gpu_batches_lie_there_and_are_nearly_those_of_torch(samples: Samples) -> None:
    source = images(samples, normalizes=False)
    with built(source, batch_size=8, threads=2) as found:
        pixels, labels = next(iter(found.iterable))
    assert (pixels.device.type, labels.device.type, labels.tolist()) == ("cuda", "cpu", list(range(8)))
    assert psnr_db(pixels.cpu(), drawn(source, 1, TORCH, batch_size=8)[0]) > 35.0
