"""What remedies make of a folder of images: copies, caches, crops and decoders that give what they promise."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from multiprocessing import Pipe, get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torch.utils.data import DataLoader

from loaderbench.datasets import DatasetOrder, image_folder
from loaderbench.datasets.decoders import DECODERS, decode_pillow
from loaderbench.datasets.host_images import HostImages
from loaderbench.datasets.image_samples import TRANSFORMS, ImageSamples
from loaderbench.datasets.presized import presized_copies
from loaderbench.datasets.shared_images import SharedImages
from loaderbench.errors import MissingError
from loaderbench.records import IDENTICAL, PixelChange

ORIENTATION = 0x0112


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int]]:
    """Four smooth pictures of different sizes, one of them gray."""
    folder = tmp_path_factory.mktemp("photos")
    made = []
    for number, (width, height) in enumerate([(500, 375), (375, 500), (1600, 1200), (640, 480)]):
        across, down = np.meshgrid(np.linspace(0, 6, width), np.linspace(0, 4, height))
        waves = [np.sin(across * (channel + 1)) * np.cos(down) for channel in range(3)]
        pixels = ((np.stack(waves, axis=-1) + 1) * 127).astype(np.uint8)
        image = Image.fromarray(pixels)
        path = folder / f"{number}.jpg"
        (image.convert("L") if number == 3 else image).save(path, quality=95)
        made.append((str(path), number))
    return made


def sample(
    photos: list[tuple[str, int]], decoder: str, transform: str, index: int, *, normalize: bool = True
) -> torch.Tensor:
    torch.manual_seed(index)
    made = ImageSamples(photos, DECODERS[decoder], TRANSFORMS[transform](normalize))[index][0]
    assert isinstance(made, torch.Tensor)
    return made


def psnr_db(one: torch.Tensor, other: torch.Tensor) -> float:
    error = ((one.float() - other.float()) ** 2).mean().item()
    return float("inf") if error == 0 else 10 * float(np.log10(255**2 / error))


def ask_here(target: Callable[..., None], *args: object, timeout_s: float) -> Any:
    """Ask as a server of processes does, in this process."""
    ours, theirs = Pipe()
    target(theirs, *args)
    return ours.recv()


def test_pixels_are_compared_or_it_is_said_why_not(photos: list[tuple[str, int]], tmp_path: Path) -> None:
    def change(one: dict[str, Any], other: dict[str, Any], ask: Any = ask_here) -> PixelChange:
        orders = [DatasetOrder(tuple(photos), arguments, tmp_path) for arguments in (one, other)]
        (found,) = image_folder.ImageFolder().pixel_changes([(orders[0], orders[1])], ask)
        return found

    pillow = {"decoder": "pillow", "num_workers": 0}
    assert change(pillow, {"decoder": "pillow", "num_workers": 2}) == IDENTICAL
    assert change(pillow, {"decoder": "pillow_lazy"}) == IDENTICAL
    scaled = change({"transform": "imagenet_train"}, {"transform": "imagenet_train_scaled"})
    assert scaled.psnr_db is not None
    assert (20 < scaled.psnr_db < 80, scaled.why_not) == (True, "")
    (tmp_path / "floats.py").write_text("import numpy\ndef make(): return lambda image: numpy.asarray(image) / 255\n")
    own = [{"decoder": decoder, "transform": "floats:make"} for decoder in ("pillow", "pillow_draft")]
    assert change(*own) == PixelChange(None, "the transform does not return uint8 images")
    unknown = change(pillow, {"decoder": "no such decoder"})
    assert (unknown.psnr_db, "no such decoder" in unknown.why_not) == (None, True)
    died = change(pillow, {"decoder": "torchvision"}, lambda *_, **__: None)
    assert (died.psnr_db, "comparing pixels crashed" in died.why_not) == (None, True)


def test_resized_copies_of_a_part_of_the_images_are_compared_with_these_images(tmp_path: Path) -> None:
    """Different grays for the samples, each with the same ramp: images that differ in gray have a low ratio."""
    ramp = Image.linear_gradient("L").resize((120, 120))
    images = []
    for number in range(50):
        images.append((str(tmp_path / f"{number}.png"), 0))
        image = Image.new("L", (300, 300), 5 * number)
        image.paste(ramp, (90, 90))
        image.save(images[-1][0])
    copies = presized_copies(images[::3], 256, cache_dir=tmp_path / "cache")
    orders = (
        DatasetOrder(tuple(images), {"presize": None}, tmp_path),
        DatasetOrder(copies, {"presize": 256}, tmp_path),
    )
    (found,) = image_folder.ImageFolder().pixel_changes([orders], ask_here)
    (reversed_,) = image_folder.ImageFolder().pixel_changes([orders[::-1]], ask_here)
    assert found.psnr_db is not None
    assert found.psnr_db > 35
    assert reversed_.psnr_db == pytest.approx(found.psnr_db)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU decodes to other pixels")
def test_dali_changes_pixels_no_more_than_another_decoder_of_the_cpu(
    photos: list[tuple[str, int]], tmp_path: Path
) -> None:
    pytest.importorskip("nvidia.dali.fn")
    names = ("torchvision", "dali", "pillow")
    of_torchvision, of_dali, of_pillow = (DatasetOrder(tuple(photos), {"decoder": name}, tmp_path) for name in names)
    pairs = [(of_torchvision, of_dali), (of_pillow, of_torchvision), (of_pillow, of_dali)]
    same, *from_pillow = image_folder.ImageFolder().pixel_changes(pairs, ask_here)
    assert same == IDENTICAL
    assert from_pillow[0] == from_pillow[1] != IDENTICAL, "the crop of a tensor rounds otherwise"


def test_names_of_a_suite_and_of_the_code_are_the_same() -> None:
    assert set(image_folder.DECODER_NAMES) == {*DECODERS, *image_folder.ON_DEVICE}
    assert set(image_folder.TRANSFORM_NAMES) == set(TRANSFORMS)


@pytest.mark.parametrize("decoder", [name for name in DECODERS if name != "pillow_draft"])
@pytest.mark.parametrize("index", range(4))
def test_every_decoder_gives_the_same_picture(photos: list[tuple[str, int]], decoder: str, index: int) -> None:
    if decoder == "nvimagecodec":
        pytest.importorskip("nvidia.nvimgcodec.nvimgcodec_impl")
    found = sample(photos, decoder, "imagenet_train", index, normalize=False)
    assert found.dtype == torch.uint8
    assert found.shape == (3, 224, 224)
    assert psnr_db(found, sample(photos, "pillow", "imagenet_train", index, normalize=False)) > 38


@pytest.mark.parametrize("index", range(4))
@pytest.mark.parametrize("recipe", ["imagenet_train_v2", "imagenet_train_scaled"])
def test_each_recipe_makes_the_same_crop(photos: list[tuple[str, int]], recipe: str, index: int) -> None:
    found = sample(photos, "pillow_lazy", recipe, index, normalize=False)
    assert psnr_db(found, sample(photos, "pillow", "imagenet_train", index, normalize=False)) > 35


def test_a_scaled_crop_decodes_fewer_pixels_where_it_is_shrunk_by_two(
    photos: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts = []
    real = Image.Image.resize
    monkeypatch.setattr(Image.Image, "resize", lambda self, *a, **k: drafts.append(self.size) or real(self, *a, **k))
    for seed in range(12):
        torch.manual_seed(seed)
        TRANSFORMS["imagenet_train_scaled"](True)(DECODERS["pillow_lazy"](photos[2][0]))
    assert {(800, 600), (1600, 1200)} & set(drafts)
    assert (800, 600) in drafts


def test_uint8_and_normalized_samples_differ_by_the_normalizing_alone(photos: list[tuple[str, int]]) -> None:
    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    for recipe in ("imagenet_train", "imagenet_train_v2", "imagenet_eval"):
        raw = sample(photos, "pillow", recipe, 0, normalize=False)
        assert torch.allclose((raw / 255 - mean) / std, sample(photos, "pillow", recipe, 0), atol=1e-4)


def test_copies_have_the_side_that_is_asked_for_and_keep_labels_and_order(
    photos: list[tuple[str, int]], tmp_path: Path
) -> None:
    told: list[tuple[int, int]] = []
    copies = presized_copies(photos, 256, cache_dir=tmp_path, on_progress=lambda *done: told.append(done))
    assert [label for _, label in copies] == [0, 1, 2, 3]
    assert [min(Image.open(path).size) for path, _ in copies] == [256] * 4
    assert told[-1] == (4, 4)
    small = presized_copies(photos, 400, cache_dir=tmp_path)
    assert small[0][0] == photos[0][0], "one that is smaller already is left as it is"


def test_copies_are_made_once_and_again_when_the_original_changes(tmp_path: Path) -> None:
    original = tmp_path / "a.jpg"
    Image.new("RGB", (600, 500), "red").save(original)
    first = Path(presized_copies([(str(original), 0)], 64, cache_dir=tmp_path)[0][0])
    made_ns = first.stat().st_mtime_ns
    assert Path(presized_copies([(str(original), 0)], 64, cache_dir=tmp_path)[0][0]).stat().st_mtime_ns == made_ns
    os.utime(original, (1, 1))
    assert presized_copies([(str(original), 0)], 64, cache_dir=tmp_path)[0][0] != str(first)


@pytest.mark.parametrize(
    ("decoder", "method"),
    [("pillow", "fork"), pytest.param("pillow", "spawn", marks=pytest.mark.slow), ("torchvision", "fork")],
)
def test_shared_images_are_what_the_decoder_gave_in_workers_too(
    photos: list[tuple[str, int]], decoder: str, method: str
) -> None:
    cache = SharedImages(photos, DECODERS[decoder], room_bytes=1 << 30)
    for path, _ in photos:
        assert np.array_equal(np.asarray(cache(path)), np.asarray(DECODERS[decoder](path)))
    dataset = ImageSamples(photos, cache, TRANSFORMS["imagenet_eval"](True))
    batch = next(iter(DataLoader(dataset, batch_size=4, num_workers=1, multiprocessing_context=method)))
    assert batch[0].shape == (4, 3, 224, 224)


@pytest.fixture
def turned(tmp_path: Path) -> str:
    """The path of an image that a camera turned."""
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    Image.effect_noise((300, 200), 50).convert("RGB").save(tmp_path / "turned.jpg", exif=exif)
    return str(tmp_path / "turned.jpg")


def test_a_cached_image_can_be_turned_as_its_file_says(turned: str, photos: list[tuple[str, int]]) -> None:
    cache = SharedImages([(turned, 0), photos[0]], decode_pillow, room_bytes=1 << 30)
    for path in (turned, photos[0][0]):
        upright = [ImageOps.exif_transpose(decode(path)) for decode in (decode_pillow, cache)]
        assert np.array_equal(*map(np.asarray, upright))
    assert upright_size(cache(turned)) == (200, 300)


def test_a_copy_can_be_turned_as_its_original(turned: str, tmp_path: Path) -> None:
    ((copy, _),) = presized_copies([(turned, 0)], 64, cache_dir=tmp_path / "cache")
    assert upright_size(decode_pillow(copy)) == (64, 96)


@pytest.mark.parametrize("exif", [b"Exif\0\0garbage!", b"Exif\0\0II*\0"])
def test_damaged_exif_data_is_ignored_as_by_the_decoder(exif: bytes, tmp_path: Path) -> None:
    path = str(tmp_path / "damaged.jpg")
    Image.new("RGB", (300, 200), (9, 9, 9)).save(path, exif=exif)
    assert SharedImages([(path, 0)], decode_pillow, room_bytes=1 << 30)(path).size == (300, 200)
    ((copy, _),) = presized_copies([(path, 0)], 64, cache_dir=tmp_path / "cache")
    assert Image.open(copy).size == (96, 64)


def upright_size(image: Any) -> tuple[int, int]:
    return ImageOps.exif_transpose(image).size


def test_a_transform_that_writes_into_an_image_changes_no_cached_one(photos: list[tuple[str, int]]) -> None:
    cache = SharedImages(photos, DECODERS["torchvision"], room_bytes=1 << 30)
    before = cache(photos[0][0]).clone()
    cache(photos[0][0])[:] = 0
    assert torch.equal(cache(photos[0][0]), before)


def in_rank(rank: int, job: str, samples: list[tuple[str, int]], made: Any, room_bytes: int = 1 << 30) -> None:
    """Make a cache as a rank of torchrun does; the first one then changes its memory, and the other sends its own."""
    torch.set_num_threads(1)  # as torchrun sets it
    os.environ |= {"LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": job}
    try:
        cache = HostImages(samples, decode_pillow if rank == 0 else None, room_bytes=room_bytes)  # type: ignore[arg-type]
    except (MemoryError, ConnectionError, ValueError) as error:
        made.send(str(error))
        return
    if rank == 0:
        cache._block.numpy()[cache._places[samples[0][0]][0]] = 77
    else:
        made.recv()
    made.send(np.asarray(cache(samples[0][0])))


def of_two_ranks(job: str, orders: list[dict[str, Any]]) -> list[Any]:
    """What each of two ranks sent."""
    pipes = [Pipe() for _ in orders]
    ranks = [
        get_context("fork").Process(target=in_rank, args=(rank, job), kwargs={"made": pipes[rank][1], **order})
        for rank, order in enumerate(orders)
    ]
    for rank in ranks:
        rank.start()
    found = [pipes[0][0].recv()]
    pipes[1][0].send("look")
    found.append(pipes[1][0].recv())
    for rank in ranks:
        rank.join()
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="ranks share nothing elsewhere")
def test_the_ranks_of_a_machine_have_one_copy_that_the_first_decodes(photos: list[tuple[str, int]]) -> None:
    first, other = of_two_ranks(f"one-{os.getpid()}", [{"samples": photos}, {"samples": photos}])
    assert first.shape == (375, 500, 3)
    assert np.array_equal(first, other)
    assert other[0, 0, 0] == 77, "the memory of the first rank"


@pytest.mark.skipif(sys.platform != "linux", reason="ranks share nothing elsewhere")
def test_what_keeps_ranks_from_sharing_is_one_line_in_each_that_cannot(photos: list[tuple[str, int]]) -> None:
    full = of_two_ranks(f"full-{os.getpid()}", [{"samples": photos, "room_bytes": 1_000}, {"samples": photos}])
    assert "more than 1,000 bytes" in full[0]
    assert "could not decode" in full[1]
    _, other = of_two_ranks(f"lists-{os.getpid()}", [{"samples": photos}, {"samples": photos[:2]}])
    assert "different lists of files" in other


def test_images_that_do_not_fit_are_refused_by_the_bytes_they_would_need(photos: list[tuple[str, int]]) -> None:
    with pytest.raises(MemoryError, match="1,000,000 bytes"):
        SharedImages(photos, decode_pillow, room_bytes=1_000_000)


def test_shared_images_can_be_sent_to_a_process() -> None:
    assert pickle.dumps(TRANSFORMS["imagenet_train_scaled"](True))


def test_copies_that_cannot_be_written_are_one_line(photos: list[tuple[str, int]], tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    with pytest.raises(MissingError, match=r"presize=64: cannot write to .*LOADERBENCH_CACHE"):
        presized_copies(photos[:1], 64, cache_dir=tmp_path / "cache")


def test_an_original_that_is_gone_is_left_for_the_trial(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.jpg")
    assert presized_copies([(gone, 3)], 64, cache_dir=tmp_path) == ((gone, 3),)
