"""What a folder and a machine call for is what a first suite asks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from loaderbench.consumers import consumer_of
from loaderbench.datasets.image_folder import ImageFolder
from loaderbench.session.first_suite import GENERATED, Folder, look_at, name_of, suite_text
from loaderbench.suite import LoadedSuite, load_suite

PHOTOS = Folder(Path("photos"), 4000, 10, True, (".jpg", ".png"), 110e3, 0.18)


def text(folder: Folder, *, gpus: int = 0, available_bytes: int = 10**12) -> str:
    return suite_text(folder, Path("photos.yaml"), gpus=gpus, available_bytes=available_bytes)


def loaded(written: str, tmp_path: Path) -> LoadedSuite:
    (tmp_path / "s.yaml").write_text(written)
    return load_suite(tmp_path / "s.yaml")


@pytest.mark.parametrize(
    ("files", "sizes"),
    [
        (4, [1]),
        (3, [1]),
        (24, [6]),
        (31, [7]),
        (32, [8]),
        (63, [8]),
        (64, [8, 16]),
        (127, [8, 16]),
        (128, [32]),
        (511, [32]),
        (512, [32, 128]),
        (4000, [32, 128]),
    ],
)
def test_batches_fill_the_folder_four_times(files: int, sizes: list[int], tmp_path: Path) -> None:
    written = text(replace(PHOTOS, files=files))
    assert loaded(written, tmp_path).suite.sweep["batch_size"] == sizes
    assert (f"several batches of {files} file" in written) == (files < 512)


@pytest.mark.parametrize(("available_bytes", "cache"), [(2 * 4000 * 110_000, "warm"), (2 * 4000 * 110_000 - 2, "cold")])
def test_files_that_half_of_the_free_memory_does_not_hold_are_read_cold(
    available_bytes: int, cache: str, tmp_path: Path
) -> None:
    assert loaded(text(PHOTOS, available_bytes=available_bytes), tmp_path).suite.measure.cache == cache


def test_pinning_is_swept_where_there_is_an_accelerator(tmp_path: Path) -> None:
    assert loaded(text(PHOTOS, gpus=1), tmp_path).suite.sweep["pin_memory"] == [False, True]
    assert "pin_memory" not in loaded(text(PHOTOS), tmp_path).suite.sweep
    assert "none was found" in text(PHOTOS)
    assert "training step on the GPU" in text(PHOTOS, gpus=2)


def test_the_folder_is_described_by_what_was_found() -> None:
    assert "4,000 files of 10 classes (.jpg .png), 110 kB, 0.18 megapixels each" in text(PHOTOS)
    assert "(.jpg .png), 0.31 kB" in text(replace(PHOTOS, bytes_per_file=310.0))
    assert "more than 4,000 files" in text(replace(PHOTOS, complete=False))
    assert "megapixels" not in text(replace(PHOTOS, megapixels=None))
    assert "synthetic JPEGs" in text(GENERATED)
    assert "4,000 files" in text(replace(PHOTOS, root=Path("photos")))

    assert "for 1 file of 1 class (" in text(replace(PHOTOS, files=1, classes=1))


@pytest.mark.parametrize(
    ("suffixes", "offered"),
    [
        ((".jpg",), "pillow | pillow_draft | torchvision; compare"),
        ((".png", ".jpeg"), "pillow | pillow_draft | torchvision; compare"),
        ((".png", ".webp"), "pillow | torchvision; compare"),
        ((".jpg", ".bmp"), "the other decoders do not read all of these files"),
        ((".tiff",), "the other decoders do not read all of these files"),
    ],
)
def test_those_decoders_are_offered_that_read_all_files(suffixes: tuple[str, ...], offered: str) -> None:
    assert f"decoder: pillow             # {offered}" in text(replace(PHOTOS, suffixes=suffixes))


def test_generated_photos_are_those_that_the_suite_makes_by_default(tmp_path: Path) -> None:
    dataset = loaded(text(GENERATED), tmp_path).suite.dataset
    assert isinstance(dataset, ImageFolder)
    assert not dataset.root
    assert (GENERATED.files, GENERATED.classes) == (dataset.generate.images, 8)


@pytest.mark.parametrize(
    ("name", "slug"), [("my photos!", "my-photos"), ("--", "images"), ("x" * 50, "x" * 40), ("a_b-C9", "a_b-C9")]
)
def test_a_suite_is_named_after_its_folder(name: str, slug: str) -> None:
    assert name_of(Path("/data") / name) == slug
    assert name_of(None) == "images"


def test_a_folder_is_looked_at_file_by_file_and_in_part(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"class{number % 2}").mkdir(exist_ok=True)
        Image.new("RGB", (1000 * (number + 1), 500)).save(tmp_path / f"class{number % 2}" / f"{number}.PNG")
    (tmp_path / "class0" / "text.jpg").write_text("no image")
    found = look_at(tmp_path)
    assert (found.files, found.classes, found.complete) == (4, 2, True)
    assert found.suffixes == (".png", ".jpg")
    assert found.megapixels == pytest.approx(1.0)
    sizes = sorted(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert found.bytes_per_file == (sizes[1] + sizes[2]) / 2
    assert found.total_bytes == 4 * found.bytes_per_file


def test_of_many_kinds_of_files_the_three_most_frequent_are_named(tmp_path: Path) -> None:
    for count, suffix in ((1, "bmp"), (4, "png"), (3, "jpg"), (2, "webp")):
        for number in range(count):
            (tmp_path / f"{number}.{suffix}").touch()
    assert look_at(tmp_path).suffixes == (".png", ".jpg", ".webp")


def test_a_name_that_cannot_be_printed_is_written_by_its_number(tmp_path: Path) -> None:
    odd = tmp_path / "bell\x07"
    written = suite_text(replace(PHOTOS, root=odd), tmp_path / "s.yaml", gpus=0)
    assert '"bell\\U00000007"' in written


def test_a_folder_without_a_readable_image_has_no_known_size(tmp_path: Path) -> None:
    (tmp_path / "one.jpg").write_text("no image")
    assert look_at(tmp_path).megapixels is None


def test_of_many_files_some_spread_over_all_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(200):
        (tmp_path / f"{number:03}.png").write_bytes(b"x" * (1 + number))
    found = look_at(tmp_path)
    assert (found.files, found.suffixes) == (200, (".png",))
    assert found.bytes_per_file == pytest.approx(100, abs=3)


@pytest.mark.parametrize(("chosen", "demand"), [("", 1000.0), ("accelerator", 2470.0), ("demand", 1000.0)])
def test_the_target_is_the_default_until_a_line_is_uncommented(chosen: str, demand: float, tmp_path: Path) -> None:
    written = text(PHOTOS)
    assert (f"# {chosen}: " in written) or not chosen
    section = loaded(written.replace(f"# {chosen}: ", f"{chosen}: "), tmp_path).suite.consumer
    found = consumer_of(section, "emulated").assumed_demand(Path())
    assert found is not None
    assert (found.samples_per_s, found.origin) == (demand, chosen.replace("demand", "suite") or "default")
