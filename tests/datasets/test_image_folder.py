"""Folders are read as torchvision reads them, and no further than asked."""

import os
import socket
from pathlib import Path

import pytest

from loaderbench.datasets.folder_scan import IMAGE_SUFFIXES, scan_image_folder
from loaderbench.errors import MissingError


def make(root: Path, files: dict[str, int]) -> Path:
    for folder, count in files.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (root / folder / f"{number:04d}.jpg").touch()
    return root


def test_files_labels_and_order_are_those_of_torchvision(tmp_path: Path) -> None:
    torchvision = pytest.importorskip("torchvision")
    make(tmp_path, {"cat": 3, "dog/deep/deeper": 2, "dog": 2, "Ant": 1})
    (tmp_path / "cat" / "notes.txt").touch()
    (tmp_path / "cat" / "UPPER.JPEG").touch()
    (tmp_path / "not-a-class.jpg").touch()
    theirs = torchvision.datasets.ImageFolder(str(tmp_path))
    ours = scan_image_folder(tmp_path)
    assert list(ours.samples) == theirs.samples
    assert list(ours.classes) == theirs.classes
    assert ours.complete


def test_the_suffixes_are_torchvision_s() -> None:
    folder = pytest.importorskip("torchvision.datasets.folder")
    assert IMAGE_SUFFIXES == folder.IMG_EXTENSIONS


def test_a_sample_is_spread_evenly_over_the_classes(tmp_path: Path) -> None:
    found = scan_image_folder(make(tmp_path, {"a": 50, "b": 50, "c": 50}), at_most=30)
    assert [sum(label == wanted for _, label in found.samples) for wanted in range(3)] == [10, 10, 10]
    assert not found.complete


def test_large_classes_make_up_for_small_ones(tmp_path: Path) -> None:
    found = scan_image_folder(make(tmp_path, {"a": 2, "b": 100, "c": 3}), at_most=40)
    assert len(found.samples) == 40
    assert not found.complete


def test_a_folder_smaller_than_the_sample_is_complete(tmp_path: Path) -> None:
    found = scan_image_folder(make(tmp_path, {"a": 2, "b": 3}), at_most=5)
    assert (len(found.samples), found.complete) == (5, True)


def test_a_large_folder_is_not_listed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, {"a": 3000})
    seen = 0
    real = os.scandir

    class Counting:
        def __init__(self, path: object) -> None:
            self._entries = real(path)  # type: ignore[call-overload]

        def __enter__(self) -> "Counting":
            return self

        def __exit__(self, *_: object) -> None:
            self._entries.close()

        def __iter__(self) -> "Counting":
            return self

        def __next__(self) -> object:
            nonlocal seen
            seen += 1
            return next(self._entries)

    monkeypatch.setattr(os, "scandir", Counting)
    assert len(scan_image_folder(tmp_path, at_most=10).samples) == 10
    assert seen < 20


def test_images_beside_each_other_are_one_class(tmp_path: Path) -> None:
    found = scan_image_folder(make(tmp_path, {".": 4}))
    assert (len(found.samples), found.classes) == (4, (".",))


@pytest.mark.parametrize("what", ["missing", "empty", "no images", "a file"])
def test_a_folder_without_images_is_one_clear_line(tmp_path: Path, what: str) -> None:
    root = tmp_path / "root"
    if what in ("empty", "no images"):
        root.mkdir()
    if what == "no images":
        (root / "class").mkdir()
        (root / "class" / "a.txt").touch()
    if what == "a file":
        root.touch()
    with pytest.raises(MissingError) as caught:
        scan_image_folder(root)
    assert str(root) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 5


def test_a_link_that_leads_nowhere_hides_no_other_image(tmp_path: Path) -> None:
    make(tmp_path, {"class": 3, "class/deep": 1})
    for name in ("00.jpg", "loop"):
        (tmp_path / "class" / name).symlink_to(name)
    found = scan_image_folder(tmp_path)
    names = [str(Path(path).relative_to(tmp_path / "class")) for path, _ in found.samples]
    assert names == ["0000.jpg", "0001.jpg", "0002.jpg", "deep/0000.jpg"]


def test_links_that_lead_back_are_followed_once(tmp_path: Path) -> None:
    make(tmp_path, {"a": 1, "a/deep": 1, "b": 1})
    (tmp_path / "a" / "deep" / "up").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "to_root").symlink_to(tmp_path)
    (tmp_path / "b" / "to_a").symlink_to(tmp_path / "a")
    found = scan_image_folder(tmp_path)
    names = sorted(str(Path(path).relative_to(tmp_path)) for path, _ in found.samples)
    assert names == [
        "a/0000.jpg",
        "a/deep/0000.jpg",
        "a/to_root/b/0000.jpg",
        "b/0000.jpg",
        "b/to_a/0000.jpg",
        "b/to_a/deep/0000.jpg",
    ]


def test_a_circular_link_beside_the_classes_is_no_class(tmp_path: Path) -> None:
    (make(tmp_path, {"a": 1}) / "loop").symlink_to("loop")
    assert scan_image_folder(tmp_path).classes == ("a",)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_is_no_regular_file_is_never_opened(tmp_path: Path) -> None:
    make(tmp_path, {"a": 1})
    os.mkfifo(tmp_path / "a" / "pipe.jpg")
    (tmp_path / "a" / "link.jpg").symlink_to("pipe.jpg")
    (tmp_path / "a" / "null.jpg").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "a" / "socket.jpg"))
        assert len(scan_image_folder(tmp_path).samples) == 1


def test_class_folders_that_may_not_be_read_are_named_where_no_image_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, {"cat": 0, "dog": 0})
    monkeypatch.setattr(os, "access", lambda path, _: path.name != "dog")  # root may read all
    with pytest.raises(MissingError, match=r"no images found .*; no permission to read dog$"):
        scan_image_folder(tmp_path)
