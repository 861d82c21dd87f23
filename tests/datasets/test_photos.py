from __future__ import annotations

import errno
import io
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PIL.JpegImagePlugin import get_sampling

from loaderbench.datasets.photo_statistics import (
    IMAGENET_MEAN_BYTES_PER_PIXEL,
    IMAGENET_QUANTILES,
    LEVELS,
    draw_recipe,
)
from loaderbench.datasets.photos import cached_photos, generate_photos, photo_jpeg, reference_jpeg
from loaderbench.errors import UsageError

REAL = Path(os.environ.get("LOADERBENCH_PHOTOS") or Path(__file__).resolve().parents[3] / "shared" / "photos")
CHROMA = {-1: "gray", 0: "4:4:4", 1: "4:2:2", 2: "4:2:0"}  # what Pillow's `get_sampling` answers; -1 for gray ones too


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated") / "photos"
    generate_photos(folder, images=256)
    return folder


def measured(folder: Path) -> dict[str, np.ndarray]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in {".jpg", ".jpeg"})
    files = np.array([path.stat().st_size for path in paths], dtype=float)
    width, height = np.array([Image.open(path).size for path in paths], dtype=float).T
    pixels = width * height
    sizes = {"file_bytes": files, "pixels": pixels, "width": width, "height": height}
    return sizes | {"bytes_per_pixel": files / pixels}


def mean_bytes_per_pixel(folder: Path) -> float:
    measures = measured(folder)
    return float(measures["file_bytes"].sum() / measures["pixels"].sum())


def everything_in(folder: Path) -> list[Path]:
    return list(folder.rglob("*"))


@pytest.mark.slow
def test_bytes_per_pixel_are_within_a_tenth_of_a_thousand_photographs(photos):
    assert mean_bytes_per_pixel(photos) == pytest.approx(IMAGENET_MEAN_BYTES_PER_PIXEL, rel=0.10)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_seeds_and_small_sets_ask_for_the_same_bytes_per_pixel(seed):
    recipes = [draw_recipe(seed, index) for index in range(128)]
    pixels = np.array([recipe.width * recipe.height for recipe in recipes])
    wanted = np.array([recipe.bytes_per_pixel for recipe in recipes])
    assert (wanted * pixels).sum() / pixels.sum() == pytest.approx(IMAGENET_MEAN_BYTES_PER_PIXEL, rel=0.10)


@pytest.mark.parametrize("measure", IMAGENET_QUANTILES)
@pytest.mark.slow
def test_sizes_are_spread_as_in_a_thousand_photographs(photos, measure):
    ratios = np.quantile(measured(photos)[measure], LEVELS) / np.array(IMAGENET_QUANTILES[measure])
    assert ratios[1:4] == pytest.approx(1.0, rel=0.15)
    assert ratios == pytest.approx(1.0, rel=0.30)  # a dozen of 256 photos lie beyond each of the outer quantiles


@pytest.mark.slow
def test_each_photo_has_about_the_bytes_its_recipe_asks_for(photos):
    recipes = [draw_recipe(0, index) for index in range(256)]
    paths = sorted(photos.rglob("*.jpg"), key=lambda path: path.name)
    wanted = np.array([recipe.bytes_per_pixel * recipe.width * recipe.height for recipe in recipes])
    errors = np.abs(np.log([path.stat().st_size for path in paths] / wanted))
    assert np.quantile(errors, 0.9) < 0.03


@pytest.mark.slow
def test_most_are_landscape_and_a_quarter_is_portrait(photos):
    sizes = measured(photos)
    assert np.mean(sizes["width"] > sizes["height"]) == pytest.approx(0.69, abs=0.06)
    assert np.mean(sizes["width"] < sizes["height"]) == pytest.approx(0.27, abs=0.06)


@pytest.mark.slow
def test_shares_of_gray_pictures_and_of_chroma_subsampling_are_those_of_photographs(photos):
    modes, chroma = [], []
    for path in photos.rglob("*.jpg"):
        with Image.open(path) as image:
            modes.append(image.mode)
            chroma.append(CHROMA[get_sampling(image)])
    assert modes.count("L") / len(modes) == pytest.approx(0.023, abs=0.012)
    assert chroma.count("4:4:4") / len(modes) == pytest.approx(0.73, abs=0.06)
    assert chroma.count("4:2:0") / len(modes) == pytest.approx(0.26, abs=0.06)


@pytest.mark.slow
def test_half_are_saved_at_the_photo_sites_quality_and_a_quarter_far_coarser(photos):
    coarseness = [np.mean(Image.open(path).quantization[0]) for path in photos.rglob("*.jpg")]
    assert np.quantile(coarseness, 0.5) == pytest.approx(4.6, abs=0.1)
    assert 8 < np.quantile(coarseness, 0.8) < 30


@pytest.mark.slow
def test_class_folders_are_even_and_read_by_image_folder(photos):
    datasets = pytest.importorskip("torchvision.datasets")
    folder = datasets.ImageFolder(photos)
    assert folder.classes == [f"class_{number:02d}" for number in range(8)]
    assert np.bincount(folder.targets).tolist() == [32] * 8
    assert folder[0][0].mode == "RGB"


def test_fewer_images_than_classes_leave_no_class_empty(tmp_path):
    generate_photos(tmp_path / "photos", images=3, classes=8)
    names = sorted(path.relative_to(tmp_path / "photos").as_posix() for path in (tmp_path / "photos").rglob("*.jpg"))
    assert names == [f"class_0{number}/photo_0000{number}.jpg" for number in range(3)]


def test_the_same_seed_gives_the_same_files_whatever_the_number_of_images_and_threads(tmp_path):
    generate_photos(tmp_path / "few", images=4, seed=5, classes=1, threads=1)
    generate_photos(tmp_path / "more", images=6, seed=5, classes=1, threads=3)
    for path in (tmp_path / "few").rglob("*.jpg"):
        assert path.read_bytes() == (tmp_path / "more" / "class_00" / path.name).read_bytes()


def test_seeds_and_indices_give_different_pictures():
    assert len({photo_jpeg(seed, index) for seed in range(2) for index in range(2)}) == 4


def test_progress_counts_each_photo_up_to_the_total(tmp_path):
    calls = []
    generate_photos(tmp_path / "photos", images=5, on_progress=lambda *call: calls.append(call))
    assert calls == [(done, 5) for done in range(1, 6)]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_generation_leaves_nothing_behind(tmp_path, interruption):
    def interrupt(done: int, total: int) -> None:
        raise interruption

    with pytest.raises(interruption):
        generate_photos(tmp_path / "photos", images=40, on_progress=interrupt)
    assert everything_in(tmp_path) == []


def test_a_folder_that_another_process_completed_meanwhile_is_kept(tmp_path):
    theirs = tmp_path / "photos" / "theirs.jpg"

    def complete(done: int, total: int) -> None:
        theirs.parent.mkdir()
        theirs.touch()

    generate_photos(tmp_path / "photos", images=1, on_progress=complete)
    assert everything_in(tmp_path) == [theirs.parent, theirs]


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path):
    mine = tmp_path / "mine.txt"
    mine.touch()
    with pytest.raises(UsageError, match="not empty"):
        generate_photos(tmp_path, images=1)
    assert everything_in(tmp_path) == [mine]
    with pytest.raises(UsageError, match=r"mine\.txt: is a file; choose another folder"):
        generate_photos(mine, images=1)


@pytest.mark.parametrize("arguments", [{"images": 0}, {"images": 1, "classes": 0}, {"images": 1, "like": "cifar"}])
def test_arguments_that_make_no_sense_are_refused(tmp_path, arguments):
    with pytest.raises(UsageError):
        generate_photos(tmp_path / "photos", **arguments)
    assert everything_in(tmp_path) == []


def test_cached_photos_are_generated_once_in_the_place_the_user_chose(tmp_path, monkeypatch):
    monkeypatch.setenv("LOADERBENCH_CACHE", str(tmp_path))
    calls = []
    first = cached_photos(images=2, seed=7, on_progress=lambda *call: calls.append(call))
    again = cached_photos(images=2, seed=7, on_progress=lambda *call: calls.append(call))
    assert first == again
    assert first.is_relative_to(tmp_path)
    assert len(list(first.rglob("*.jpg"))) == 2
    assert calls == [(1, 2), (2, 2)]


def test_photos_that_are_gone_from_the_cache_are_generated_again(tmp_path):
    folder = cached_photos(images=9, seed=7, cache_dir=tmp_path)
    complete = {path: path.read_bytes() for path in folder.rglob("*.jpg")}
    shutil.rmtree(folder / "class_00")
    (folder / "class_01" / "photo_00001.jpg").write_bytes(b"")
    (folder / "class_02" / "photo_00002.jpg").unlink()
    calls = []
    assert cached_photos(images=9, seed=7, cache_dir=tmp_path, on_progress=lambda *call: calls.append(call)) == folder
    assert {path: path.read_bytes() for path in folder.rglob("*.jpg")} == complete
    assert calls == [(done, 4) for done in range(1, 5)]


def test_cached_photos_of_different_kinds_do_not_share_a_folder(tmp_path):
    kinds = [{"images": 1}, {"images": 2}, {"images": 1, "seed": 1}]
    assert len({cached_photos(cache_dir=tmp_path, **kind) for kind in kinds}) == 3


def test_the_reference_is_always_the_same_full_chroma_photo():
    assert reference_jpeg() == reference_jpeg()
    with Image.open(io.BytesIO(reference_jpeg())) as image:
        assert (image.format, image.size, image.mode, get_sampling(image)) == ("JPEG", (500, 375), "RGB", 0)
        assert np.asarray(image).std() > 20  # something is to be seen on it


def test_photos_are_made_without_torch():
    code = "import loaderbench.datasets.photos, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(not REAL.is_dir(), reason="no photographs: set LOADERBENCH_PHOTOS to a folder of them")
def test_bytes_per_pixel_are_within_a_tenth_of_the_photographs_at_hand(photos):
    assert mean_bytes_per_pixel(photos) == pytest.approx(mean_bytes_per_pixel(REAL), rel=0.10)


def test_what_a_killed_call_left_is_removed_by_the_next(tmp_path: Path) -> None:
    old, young = tmp_path / ".a.01234567.unfinished", tmp_path / ".b.89abcdef.unfinished"
    old.mkdir()
    young.mkdir()
    users = tmp_path / ".backup.unfinished"
    users.mkdir()
    for folder in (old, users):
        os.utime(folder, (0, 0))
    generate_photos(tmp_path / "photos", images=2)
    assert not old.exists()
    assert young.exists()
    assert users.exists(), "no call of this program gives that name"


def test_a_call_that_still_paints_is_not_taken_for_a_killed_one(tmp_path: Path) -> None:
    def another_call(done: int, total: int) -> None:
        (unfinished,) = tmp_path.glob(".long.*")
        assert time.time() - unfinished.stat().st_mtime < 60
        os.utime(unfinished, (0, 0))  # begun hours ago

    generate_photos(tmp_path / "long", images=3, on_progress=another_call)


@pytest.mark.parametrize("kind", ["link", "mount point"])
def test_an_empty_folder_that_cannot_be_replaced_is_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    folder = tmp_path / "photos"
    if kind == "link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    else:
        folder.mkdir()
        usual = Path.rename

        def busy(path: Path, target: Path) -> Path:
            if target == folder:
                raise OSError(errno.EBUSY, "Device or resource busy")
            return usual(path, target)

        monkeypatch.setattr(Path, "rmdir", lambda _: None)
        monkeypatch.setattr(Path, "rename", busy)
    generate_photos(folder, images=2)
    assert len(list(folder.rglob("*.jpg"))) == 2
    assert not list(tmp_path.glob(".*"))


def test_a_place_that_cannot_be_written_to_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write"):
        generate_photos(tmp_path / "file" / "photos", images=2)
