"""A program to paste reads the files that the run read, with the same labels, and leaves other folders alone."""

from __future__ import annotations

import multiprocessing
import os
import random
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from loader_batches import sharing_leftovers
from PIL import Image
from planted_causes import FOLDER

from loaderbench.datasets.folder_scan import scan_image_folder
from loaderbench.loaders import LOADER_BACKENDS
from loaderbench.loaders.written_once import written_once
from loaderbench.records import Config
from loaderbench.remedies.pack_small_files import REMEDY as PACK_SMALL_FILES
from loaderbench.remedies.program import python_program

LOADER = {"batch_size": 2, "drop_last": False}
LAYOUTS = {
    "without_class_folders": ["empty/", "labels.csv", "0.jpg", "1.png", "2.JPG"],
    "with_an_empty_class": ["a/0.jpg", "b/", "c/1.jpg", "c/below/2.jpg", "labels.csv"],
}

CHANGES: list[Config] = [
    {},
    {"presize": 256},
    {"image_cache": "shared_memory"},
    {"decoder": "device"},
    {"loader": "threads", "threads": 1},
]


def folder_of(names: list[str], root: Path) -> Path:
    """A folder with empty folders, tables and images, by their names."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            (root / name).mkdir(parents=True)
        elif name.endswith(".csv"):
            (root / name).write_text("name,label")
        else:
            Image.new("RGB", (300, 260), (random.Random(name).randrange(256), 0, 0)).save(root / name)
    return root


def run_program(config: Config, root: Path, **options: Any) -> dict[str, Any]:
    """The names that a program defines."""
    names: dict[str, Any] = {"root": str(root), "__name__": "snippet"}
    exec(compile(python_program({**LOADER, **config}, LOADER, {**FOLDER, **options}), "snippet", "exec"), names)
    return names


def labels_of(names: dict[str, Any]) -> list[int]:
    return sorted(label for _, labels in names["loader"] for label in labels.tolist())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_program_reads_the_files_and_labels_of_the_run(layout: str, change: Config, tmp_path: Path) -> None:
    root = folder_of(LAYOUTS[layout], tmp_path / "train")
    (root / "circular").symlink_to(root / "circular")
    if "presize" in change:
        folder_of(LAYOUTS[layout], tmp_path / "train-256")
    names = run_program(change, root)
    folder = next(tmp_path.glob("train-256-*")) if "presize" in change else root
    measured = {(str(folder / Path(path).relative_to(root)), label) for path, label in scan_image_folder(root).samples}
    assert {(os.path.normpath(path), label) for path, label in names["dataset"].samples} == measured
    assert labels_of(names) == sorted(label for _, label in measured)


@pytest.mark.parametrize("change", CHANGES)
def test_a_program_for_several_classes_needs_no_class_of_its_own(change: Config, tmp_path: Path) -> None:
    root = folder_of(LAYOUTS["with_an_empty_class"], tmp_path / "train")
    code = python_program({**LOADER, **change}, LOADER, FOLDER, classes=3)
    assert "find_classes" not in code
    names: dict[str, Any] = {"root": str(root), "__name__": "snippet"}
    exec(compile(code, "snippet", "exec"), names)
    assert labels_of(names) == sorted(label for _, label in scan_image_folder(root).samples)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_shards_hold_the_files_and_labels_of_the_run(layout: str, tmp_path: Path) -> None:
    root = folder_of(LAYOUTS[layout], tmp_path / "train")
    target = root.parent / "elsewhere.jpg"
    first = next(root.rglob("0.jpg"))
    first.rename(target)
    first.symlink_to(target)
    code = PACK_SMALL_FILES.code or ""
    commands = "\n".join(line[4:] for line in code.splitlines() if line.startswith("#   "))
    subprocess.run(["bash", "-c", commands], cwd=root, check=True)
    names: dict[str, Any] = {}
    exec(code, names)
    shards = sorted(map(str, root.glob("*.tar")))
    samples = list(names["Shards"](shards, lambda image: image.size, ["a", "b", "c"]))
    assert sorted(label for _, label in samples) == sorted(label for _, label in scan_image_folder(root).samples)


@sharing_leftovers
@pytest.mark.parametrize("loader", ["webdataset", "streaming", "litdata", "tf_records"])
def test_a_program_that_writes_shards_leaves_other_folders_alone(
    loader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = LOADER_BACKENDS[loader]
    if not backend.is_installed():
        pytest.skip(f"{loader} is not installed")
    monkeypatch.setenv("LITDATA_DISABLE_VERSION_CHECK", "1")
    monkeypatch.chdir(tmp_path)
    others = [Path("shards/index.json"), Path("shards/000000.tar"), Path("chunks/index.json")]
    others += [Path("shards/0.tfrecord"), Path("shards.part/mine")]
    for path in others:
        path.parent.mkdir(exist_ok=True)
        path.write_text("other content")
    own: Config = {"num_workers": 0} if backend.is_torchs else {"threads": 1}
    config: Config = {"loader": loader, "transform": "imagenet_eval", "shuffle": False, **own}
    folders = {
        "one": (["a/0.jpg", "b/1.jpg", "b/2.jpg" if loader == "tf_records" else "b/2.bmp"], [0, 1, 1]),
        "two": (["a/0.jpg", "a/1.jpg"], [0, 0]),
    }
    for name, (files, _) in folders.items():
        folder_of(files, tmp_path / name)
    for name, (_, labels) in [*folders.items(), *folders.items()]:
        assert labels_of(run_program(config, tmp_path / name, format=backend.format)) == labels
    assert [path.read_text() for path in others] == ["other content"] * len(others)
    assert len([*tmp_path.glob("shards-*")]) == len(folders), "written once"


RANKS = 3


def written_by_a_rank(folder: Path, started: Any) -> None:
    """Write shards into the current folder, at the same time as the other ranks."""
    dataset = SimpleNamespace(samples=[(str(folder / f"{number}.jpg"), number) for number in range(4)])
    code = written_once(
        "text", "for _, label in files:\n    (part / f'{label}.txt').write_text(str(label))", shuffle=False
    )
    os.chdir(folder)
    started.wait()
    names: dict[str, Any] = {"dataset": dataset}
    exec(code.replace("    part.mkdir()\n", "    part.mkdir()\n    meet()\n"), {**names, "meet": started.wait})


def test_ranks_that_write_shards_at_the_same_time_all_find_them_complete(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    started = context.Barrier(RANKS, timeout=60)
    ranks = [context.Process(target=written_by_a_rank, args=(tmp_path, started)) for _ in range(RANKS)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0] * RANKS
    (shards,) = tmp_path.iterdir()
    assert sorted(path.name for path in shards.iterdir()) == [f"{number}.txt" for number in range(4)]


def test_shards_that_cannot_be_written_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match="no space"):
        exec(
            written_once("text", "raise OSError('no space')", shuffle=False),
            {"dataset": SimpleNamespace(samples=[("a.jpg", 0)])},
        )
    assert list(tmp_path.iterdir()) == []


def test_a_smaller_copy_is_written_again_after_its_image_changed(tmp_path: Path) -> None:
    root = folder_of(["a/0.jpg"], tmp_path / "train")
    image = root / "a" / "0.jpg"
    for color in (0, 255):
        Image.new("RGB", (300, 260), (color, 0, 0)).save(image)
        later_s = image.stat().st_mtime + color
        os.utime(image, (later_s, later_s))
        ((copy, _),) = run_program({"presize": 256}, root)["dataset"].samples
        assert Image.open(copy).getpixel((0, 0))[0] == pytest.approx(color, abs=4)


def test_a_small_image_keeps_its_file_as_in_the_trial(tmp_path: Path) -> None:
    root = folder_of(["a/0.jpg"], tmp_path / "train")
    Image.new("RGB", (300, 256)).save(root / "a" / "0.jpg")
    assert run_program({"presize": 256}, root)["dataset"].samples == [(str(root / "a" / "0.jpg"), 0)]


def test_a_smaller_copy_can_be_made_of_an_image_with_damaged_exif_data(tmp_path: Path) -> None:
    root = folder_of(["a/0.jpg"], tmp_path / "train")
    Image.new("RGB", (600, 512)).save(root / "a" / "0.jpg", exif=b"Exif\0\0garbage!")
    ((copy, _),) = run_program({"presize": 256}, root)["dataset"].samples
    assert Image.open(copy).size == (300, 256)


def test_a_smaller_copy_is_turned_as_its_original(tmp_path: Path) -> None:
    root, exif = folder_of(["a/0.jpg"], tmp_path / "train"), Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (300, 260)).save(root / "a" / "0.jpg", exif=exif)
    ((copy, _),) = run_program({"presize": 256}, root)["dataset"].samples
    assert Image.open(copy).getexif()[0x0112] == 6


@pytest.mark.parametrize("skips", [False, True])
def test_a_program_says_that_bad_files_were_left_out(skips: bool) -> None:
    program = python_program(LOADER, LOADER, {**FOLDER, "skip_bad": skips})
    assert ("# Measured without the files that cannot be decoded" in program) is skips
