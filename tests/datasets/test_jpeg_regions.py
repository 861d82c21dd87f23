"""nvImageCodec decodes the region of a crop to the pixels of a whole image, in every kind of worker."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nvidia.nvimgcodec.nvimgcodec_impl")
torch = pytest.importorskip("torch")
from command_line import loaderbench  # noqa: E402
from PIL import Image  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

from loaderbench.datasets import DatasetOrder  # noqa: E402
from loaderbench.datasets.image_folder import ImageFolder  # noqa: E402
from loaderbench.datasets.jpeg_regions import JpegRegions, open_jpeg  # noqa: E402
from loaderbench.errors import BadImageError  # noqa: E402
from loaderbench.freeing.replay import copy_of  # noqa: E402
from loaderbench.records import IDENTICAL  # noqa: E402
from loaderbench.remedies.program import python_program  # noqa: E402
from loaderbench.store import read_run  # noqa: E402

REGIONS = {"decoder": "nvimagecodec", "transform": "imagenet_train_region", "normalize": "device"}
WHOLE = {"decoder": "simplejpeg", "transform": "imagenet_train_v2", "normalize": "device"}
USUAL = {"decoder": "pillow", "transform": "imagenet_train"}
TURNED = Image.Exif()
TURNED[274] = 6  # a camera that was held upright

JPEGS: dict[str, dict[str, Any]] = {
    "4:4:4": {"subsampling": 0},
    "4:2:2": {"subsampling": 1},
    "4:2:0": {"subsampling": 2},
    "progressive": {"progressive": True},
    "turned": {"exif": TURNED},
}
PLACES = [(0, 0, 333, 500), (1, 3, 17, 9), (37, 51, 138, 174), (199, 250, 333, 500), (332, 499, 333, 500)]
"""Top, left, bottom, right."""

SUITE = """\
name: regions
dataset: {root: photos, decoder: nvimagecodec, transform: imagenet_train_region}
loader: {batch_size: 4, shuffle: true, drop_last: true}
sweep: {loader: [torch, threads, spdl], num_workers: [1], threads: [2]}
consumer: {kind: none}
measure: {rounds: 1, seconds: 0.3, verify: false}
"""

DECODED_BEFORE = """\
import pickle
import sys

import torch
from torch.utils.data import DataLoader

from loaderbench.datasets.image_folder import ImageFolder

if __name__ == "__main__":
    with open("order", "rb") as file:
        source = ImageFolder().build(pickle.load(file)).source
    source[0]
    loader = DataLoader(
        source, batch_size=8, num_workers=1, multiprocessing_context=sys.argv[1],
        generator=torch.Generator().manual_seed(3),
    )
    torch.save(next(iter(loader)), "batch")
"""


@pytest.fixture(scope="module")
def picture(photos: Path) -> Image.Image:
    return Image.open(sorted(photos.rglob("*.jpg"))[0]).convert("RGB").resize((500, 333))


@pytest.fixture(scope="module")
def samples(photos: Path) -> tuple[tuple[str, int], ...]:
    return tuple((str(path), label) for label, path in enumerate(sorted(photos.rglob("*.jpg"))))


def encoded(picture: Image.Image, kind: str = "JPEG", **how: Any) -> bytes:
    file = BytesIO()
    picture.save(file, kind, **how)
    return file.getvalue()


def dataset(samples: tuple[tuple[str, int], ...], options: dict[str, Any], **more: Any) -> Any:
    return ImageFolder().build(DatasetOrder(samples, {**options, **more}, Path())).source


def crops(samples: tuple[tuple[str, int], ...], options: dict[str, Any], **more: Any) -> torch.Tensor:
    source = dataset(samples, options, **more)
    torch.manual_seed(7)
    return torch.stack([source[number][0] for number in range(8)])


def check_regions(data: bytes) -> None:
    """They are those that Pillow cuts out of all pixels."""
    opened, whole = open_jpeg(data), np.array(Image.open(BytesIO(data)).convert("RGB"))
    assert tuple(opened.shape) == (3, *whole.shape[:2])
    for top, left, bottom, right in PLACES:
        found = opened[:, top:bottom, left:right].permute(1, 2, 0).numpy()
        assert np.array_equal(found, whole[top:bottom, left:right])


@pytest.mark.parametrize("name", JPEGS)
def test_a_region_has_the_pixels_of_the_whole_image(picture: Image.Image, name: str) -> None:
    data = encoded(picture, **JPEGS[name])
    assert isinstance(open_jpeg(data), JpegRegions)
    check_regions(data)


def test_gray_images_have_three_channels(picture: Image.Image) -> None:
    check_regions(encoded(picture.convert("L")))


@pytest.mark.parametrize("kind", ["PNG", "GIF", "CMYK"])
def test_pillow_decodes_what_is_not_a_jpeg_in_color(picture: Image.Image, kind: str) -> None:
    data = encoded(picture.convert("CMYK")) if kind == "CMYK" else encoded(picture, kind)
    assert isinstance(open_jpeg(data), torch.Tensor)
    check_regions(data)


def test_a_seed_draws_the_crops_that_it_draws_of_whole_images(samples: tuple[tuple[str, int], ...]) -> None:
    ours = crops(samples, REGIONS)
    assert torch.equal(ours, crops(samples, WHOLE))
    assert torch.equal(ours, crops(samples, REGIONS, decoder="simplejpeg"))
    assert torch.equal(ours, crops(samples, REGIONS, image_cache="shared_memory"))
    assert torch.equal(ours, crops(samples, WHOLE, decoder="nvimagecodec"))


def test_pixels_change_as_little_as_with_another_decoder(samples: tuple[tuple[str, int], ...]) -> None:
    def ask(target: Any, *args: Any, timeout_s: float) -> Any:
        sent: list[Any] = []
        target(type("Pipe", (), {"send": lambda _, found: sent.append(found)})(), *args)
        return sent[0]

    ours, whole, pillow = (DatasetOrder(samples, options, Path()) for options in (REGIONS, WHOLE, {}))
    found = ImageFolder().pixel_changes([(whole, ours), (pillow, whole), (pillow, ours)], ask)
    assert found[0] == IDENTICAL
    assert found[1] == found[2] != IDENTICAL


def test_a_broken_image_is_named_by_its_path_unless_the_crop_lies_before_the_damage(
    picture: Image.Image, tmp_path: Path
) -> None:
    data = encoded(picture)
    whole = np.array(picture)
    half = open_jpeg(data[: len(data) * 2 // 3])
    assert np.abs(half[:, :50, :50].permute(1, 2, 0).numpy().astype(int) - whole[:50, :50]).mean() < 10
    for name, left in (("half.jpg", data[: len(data) * 2 // 3]), ("head.jpg", data[:4]), ("none.jpg", b"no JPEG")):
        (tmp_path / name).write_bytes(left)
        source = dataset(((str(tmp_path / name), 0),), REGIONS)
        torch.manual_seed(1)  # a crop that goes down to the end
        with pytest.raises(BadImageError, match=name):
            source[0]


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_workers_decode_after_the_process_that_starts_them_has_decoded(
    samples: tuple[tuple[str, int], ...], method: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(DECODED_BEFORE)
    order = DatasetOrder(samples, REGIONS, Path())
    (tmp_path / "order").write_bytes(pickle.dumps(order))
    subprocess.run([sys.executable, "program.py", method], cwd=tmp_path, timeout=120, check=True)
    images, labels = torch.load(tmp_path / "batch")
    assert labels.tolist() == list(range(8))
    whole = DataLoader(dataset(samples, WHOLE), batch_size=8, num_workers=1, generator=torch.Generator().manual_seed(3))
    assert torch.equal(images, next(iter(whole))[0])


def test_threads_share_no_decoder(samples: tuple[tuple[str, int], ...]) -> None:
    opened = [open_jpeg(path) for path, _ in samples[:4]]
    alone = [image[:, 10:200, 20:180] for image in opened]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda number: opened[number % 4][:, 10:200, 20:180], range(200)))
    assert all(torch.equal(image, alone[number % 4]) for number, image in enumerate(found))


def test_decoding_can_be_made_free_for_an_image_that_is_only_opened(samples: tuple[tuple[str, int], ...]) -> None:
    opened = open_jpeg(samples[0][0])
    kept = copy_of(opened)
    assert isinstance(kept, torch.Tensor)
    assert torch.equal(kept, opened[:, :, :])


@pytest.mark.parametrize("change", [REGIONS, {"decoder": "nvimagecodec"}])
def test_the_program_to_paste_gives_batches(photos: Path, change: dict[str, Any]) -> None:
    names: dict[str, Any] = {"root": str(photos), "__name__": "snippet"}
    loader = {"batch_size": 4, "num_workers": 1}
    exec(compile(python_program({**loader, **change}, loader, USUAL), "snippet", "exec"), names)
    images, labels = next(iter(names["loader"]))
    assert (images.shape, labels.tolist()) == ((4, 3, 224, 224), [0] * 4)


def test_loaders_with_workers_and_with_threads_are_measured_and_decoding_is_a_stage(
    photos: Path, tmp_path: Path
) -> None:
    (tmp_path / "photos").symlink_to(photos)
    (tmp_path / "s.yaml").write_text(SUITE)
    result = loaderbench("run", "s.yaml", "--out", "run", "-q", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    trials = {trial.config["loader"]: trial for trial in read_run(tmp_path / "run").trials if trial.role == "sweep"}
    assert {loader: trial.status for loader, trial in trials.items()} == dict.fromkeys(
        ("torch", "threads", "spdl"), "completed"
    )
    stages = trials["torch"].stages or {}
    decode_s, transform_s = stages["decode"].cpu_s or 0, stages["transform"].cpu_s or 0
    assert decode_s > transform_s / 4 > 0, "opening alone takes a 200th of it; the region is decoded in the transform"
    assert (stages["read"].cpu_s or 0) > 0
