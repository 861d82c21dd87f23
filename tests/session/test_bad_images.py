"""Files that cannot be decoded are left out where the suite asks for it; else a trial that meets one says which."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PIL import Image

from loaderbench.datasets.bad_images import count_bad_images
from loaderbench.datasets.photos import generate_photos
from loaderbench.datasets.presized import presized_copies
from loaderbench.errors import MissingError
from loaderbench.session.running import run

SUITE = """
dataset: {{root: photos, skip_bad: {skip}}}
loader: {{batch_size: 4}}
sweep: {{num_workers: [0]}}
consumer: {{kind: none}}
measure: {{rounds: 1, seconds: 0.2, verify: false}}
"""


@pytest.fixture(scope="module")
def twelve_photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("twelve") / "photos"
    generate_photos(place, images=12, classes=2)
    return place


@pytest.fixture
def folder(tmp_path: Path, twelve_photos: Path) -> Path:
    """Twelve photos, one that is cut, one that is text; and a suite beside them."""
    shutil.copytree(twelve_photos, tmp_path / "photos")
    cut = tmp_path / "photos" / "class_00" / "photo_00000.jpg"
    cut.write_bytes(cut.read_bytes()[:2000])
    (tmp_path / "photos" / "class_01" / "text.jpg").write_text("no image")
    return tmp_path


def suite(folder: Path, skip: str) -> Path:
    file = folder / "s.yaml"
    file.write_text(SUITE.format(skip=skip))
    return file


def test_files_that_cannot_be_decoded_are_left_out_and_named(folder: Path) -> None:
    found = run(suite(folder, "true"), out=folder / "r")

    assert [trial.status for trial in found.trials] == ["completed"]
    dataset = found.record.dataset
    assert (dataset.files, dataset.bad_files, dataset.total_files) == (11, 2, 13)
    assert dataset.description == "11 images of 2 classes in photos"
    cut, text = dataset.bad_images
    assert cut.startswith("class_00/photo_00000.jpg: OSError: ")
    assert text.startswith("class_01/text.jpg: UnidentifiedImageError: ")
    assert str(folder) not in cut + text
    assert any(note.startswith("skipped 2 files that cannot be decoded: class_00/") for note in found.record.notes)


def test_a_trial_that_meets_one_names_it_and_how_many_there_are(folder: Path) -> None:
    found = run(suite(folder, "false"), out=folder / "r")

    failure = found.trials[0].failure
    assert failure is not None
    assert failure.kind == "bad_image"
    assert "text.jpg" in failure.message or "photo_00000.jpg" in failure.message
    assert failure.hint.startswith("Pillow cannot decode 2 of 13 files. ")
    assert "dataset.skip_bad: true" in failure.hint
    assert "skip_bad is off" in found.record.dataset.not_measured["bad_files"]


def test_a_folder_of_nothing_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_text("no image")
    with pytest.raises(MissingError, match=r"none of 1 files can be decoded; a\.jpg: UnidentifiedImageError"):
        run(suite(tmp_path, "true"), out=tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_what_one_decoder_of_several_cannot_decode_names_that_decoder(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (300, 300)).save(tmp_path / "photos" / "a.bmp")
    file = suite(tmp_path, "true")
    file.write_text(file.read_text().replace("[0]", "[0], decoder: [torchvision, pillow]"))
    said = r"none of 1 files can be decoded by each decoder \(pillow, torchvision\); a\.bmp: torchvision: RuntimeError"
    with pytest.raises(MissingError, match=said):
        run(file, out=tmp_path / "r")


def test_the_path_of_a_bad_file_is_left_out_where_pillow_quotes_it(folder: Path) -> None:
    (folder / "photos" / "class_01" / "text.jpg").rename(folder / "photos" / "class_01" / "a\nb.jpg")
    found = run(suite(folder, "true"), out=folder / "r").record.dataset
    assert found.bad_images[1] == "class_01/a\nb.jpg: UnidentifiedImageError: cannot identify image file '...'"


@pytest.mark.parametrize("decoder", ["pillow_lazy", "torchvision"])
def test_a_cache_of_images_names_the_file_that_it_cannot_decode(folder: Path, decoder: str) -> None:
    text = folder / "photos" / "class_01" / "text.jpg"
    text.unlink()
    file = suite(folder, "false")
    file.write_text(file.read_text().replace("[0]", f"[0], decoder: {decoder}, image_cache: shared_memory"))
    failure = run(file, out=folder / "r").trials[0].failure
    assert failure is not None
    assert failure.kind == "bad_image"
    assert "class_00/photo_00000.jpg: " in failure.message


def test_a_look_after_a_failure_takes_no_longer_than_it_may(folder: Path) -> None:
    file = str(folder / "photos" / "class_01" / "text.jpg")
    assert count_bad_images(((file, 0),) * 1000, 0.0) == (64, 64)


def test_an_image_too_long_for_a_jpeg_keeps_its_file(tmp_path: Path) -> None:
    for name, height in (("long.png", 80_000), ("short.png", 400)):
        Image.new("RGB", (300, height)).save(tmp_path / name)
    samples = [(str(tmp_path / name), 0) for name in ("long.png", "short.png")]
    long, short = presized_copies(samples, 256, cache_dir=tmp_path / "cache")
    assert long == samples[0]
    with Image.open(short[0]) as image:
        assert (image.format, image.size) == ("JPEG", (256, 341))
    assert [file.suffix for file in (tmp_path / "cache" / "presized" / "256").iterdir()] == [".jpg"]


def test_copies_of_another_size_leave_what_cannot_be_read_as_it_is(folder: Path) -> None:
    text = folder / "photos" / "class_01" / "text.jpg"
    good = shutil.copy(folder / "photos" / "class_01" / "photo_00001.jpg", folder / "good.jpg")
    copies = presized_copies([(str(text), 0), (str(good), 1)], 64, cache_dir=folder / "cache")
    assert copies[0] == (str(text), 0)
    assert copies[1][0] != str(good)
