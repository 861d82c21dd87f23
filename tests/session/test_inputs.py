"""What trials read and what eats it, found out before anything is measured."""

from __future__ import annotations

from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from loaderbench import libraries
from loaderbench.consumers import resolve_consumer
from loaderbench.datasets import Inputs, image_folder, nvimagecodec, page_cache, photos
from loaderbench.datasets.bad_images import NAMED
from loaderbench.errors import MissingError
from loaderbench.records import DatasetSummary
from loaderbench.session import inputs as run_inputs
from loaderbench.session.inputs import RunInputs, check_samples, described, notes_left_out
from loaderbench.suite import LoadedSuite, Suite, load_suite


class Hears:
    """A listener that keeps each message as a line."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def doing(self, what: str) -> None:
        self.said.append(what)

    def generating(self, done: int, total: int) -> None:
        self.said.append(f"{done}/{total}")


@pytest.fixture
def hears() -> Any:
    return Hears()


@pytest.fixture
def warmed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(page_cache, "warm", found.extend)
    return found


def suite(tmp_path: Path, text: str) -> LoadedSuite:
    (tmp_path / "s.yaml").write_text(text)
    return load_suite(tmp_path / "s.yaml")


def prepare_inputs(loaded: LoadedSuite, hears: Any) -> Inputs:
    """The inputs of a suite that has one choice of data."""
    (found,) = run_inputs.prepare_inputs(loaded, hears).of_choice.values()
    return found


def folder(tmp_path: Path, *counts: int) -> None:
    for label, count in enumerate(counts):
        (tmp_path / "photos" / f"class{label}").mkdir(parents=True)
        for number in range(count):
            (tmp_path / "photos" / f"class{label}" / f"{number}.jpg").touch()


def test_the_files_of_a_folder_are_read_once_for_a_warm_page_cache(
    tmp_path: Path, hears: Hears, warmed: list[str]
) -> None:
    folder(tmp_path, 2, 3)
    found = prepare_inputs(suite(tmp_path, "dataset: {root: photos}\n"), hears)
    assert [label for _, label in found.samples] == [0, 0, 1, 1, 1]
    assert warmed == [path for path, _ in found.samples]
    assert (found.summary.files, found.summary.classes, found.summary.total_files) == (5, 2, 5)
    assert found.summary.description == "5 images of 2 classes in photos"
    assert set(found.summary.not_measured) == {"bad_files"}
    assert [line.split(" in ")[0] for line in hears.said] == [
        "looking for images",
        "warming the page cache: reading 5 files",
    ]


@pytest.mark.parametrize("root", ["photos", "./x/../photos", "link"])
def test_the_folder_of_the_images_is_known_however_its_path_is_written(
    tmp_path: Path, hears: Hears, warmed: list[str], root: str
) -> None:
    folder(tmp_path, 1)
    (tmp_path / "x").mkdir()
    (tmp_path / "link").symlink_to("photos", target_is_directory=True)
    for written in (root, tmp_path / root):
        found = prepare_inputs(suite(tmp_path, f"dataset: {{root: '{written}'}}\n"), hears)
        assert found.summary.root == str((tmp_path / "photos").resolve())


def test_a_cold_page_cache_is_left_cold(tmp_path: Path, hears: Hears, warmed: list[str]) -> None:
    folder(tmp_path, 1)
    found = prepare_inputs(suite(tmp_path, "dataset: {root: photos}\nmeasure: {cache: cold}\n"), hears)
    assert (warmed, len(hears.said)) == ([], 1)
    assert found.summary.description == "1 image of 1 class in photos"


def test_two_files_are_told_as_several(tmp_path: Path, hears: Hears, warmed: list[str]) -> None:
    folder(tmp_path, 2)
    prepare_inputs(suite(tmp_path, "dataset: {root: photos}\n"), hears)
    assert hears.said[-1].startswith("warming the page cache: reading 2 files")


def test_one_file_is_told_as_one(tmp_path: Path, hears: Hears, warmed: list[str]) -> None:
    folder(tmp_path, 1)
    prepare_inputs(suite(tmp_path, "dataset: {root: photos}\n"), hears)
    assert hears.said[-1].startswith("warming the page cache: reading 1 file")


def test_a_sample_of_a_folder_has_no_known_total(tmp_path: Path, hears: Hears, warmed: list[str]) -> None:
    folder(tmp_path, 4, 4)
    found = prepare_inputs(suite(tmp_path, "dataset: {root: photos, sample: 4}\n"), hears)
    assert (found.summary.files, found.summary.total_files) == (4, None)
    assert "sampled from a larger folder" in found.summary.description
    assert set(found.summary.not_measured) == {"bad_files", "total_files"}


def test_photos_are_generated_where_no_folder_is_named(
    tmp_path: Path, hears: Hears, warmed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(tmp_path, 3)
    asked: list[dict[str, Any]] = []

    def cached(**known: Any) -> Path:
        asked.append(known)
        known["on_progress"](1, 3)
        return tmp_path / "photos"

    monkeypatch.setattr(photos, "cached_photos", cached)
    text = "dataset: {generate: {images: 1500, seed: 9}}\n"
    found = prepare_inputs(suite(tmp_path, text), hears)
    assert (asked[0]["images"], asked[0]["seed"]) == (1500, 9)
    assert "1,500 synthetic JPEGs" in found.summary.description
    assert "seed 9" in found.summary.description
    assert "1/3" in hears.said
    assert "1,500" in described(suite(tmp_path, text))


def test_a_target_s_files_are_its_own_matter(tmp_path: Path, hears: Hears, warmed: list[str]) -> None:
    loaded = suite(tmp_path, 'dataset: {kind: target, target: "mine:make"}\n')
    found = prepare_inputs(loaded, hears)
    assert (found.samples, hears.said, warmed) == ((), [], [])
    assert set(found.summary.not_measured) == {"files", "classes", "total_files", "bad_files", "root"}
    assert described(loaded) == found.summary.description == "target mine:make"


def test_what_will_be_read_can_be_told_without_reading_it(tmp_path: Path, warmed: list[str]) -> None:
    folder(tmp_path, 2, 2)
    assert described(suite(tmp_path, "dataset: {root: photos}\n")) == "4 images of 2 classes in photos"
    assert warmed == []
    with pytest.raises(MissingError, match="no such folder"):
        described(suite(tmp_path, "dataset: {root: nowhere}\n"))


@pytest.mark.parametrize(
    "text",
    [
        "dataset: {root: photos, decoder: simplejpeg}\n",
        "dataset: {root: photos}\nsweep: {decoder: [pillow, simplejpeg]}\n",
        "dataset: {root: photos}\nsweep: {decoder: [simplejpeg]}\n",
    ],
)
def test_a_decoder_whose_package_is_not_there_is_missed_before_anything_is_measured(
    tmp_path: Path, hears: Hears, warmed: list[str], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    folder(tmp_path, 1)
    loaded = suite(tmp_path, text)
    monkeypatch.setattr(image_folder, "find_spec", lambda _: None)
    for look in (lambda: described(loaded), lambda: prepare_inputs(loaded, hears)):  # type: ignore[arg-type]
        with pytest.raises(MissingError, match="simplejpeg"):
            look()
    monkeypatch.setattr(image_folder, "find_spec", lambda _: object())
    assert described(loaded)


def test_without_dali_its_decoder_is_missed_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(tmp_path, 1)
    loaded = suite(tmp_path, "dataset: {root: photos}\nsweep: {decoder: [pillow, dali]}\n")
    folder_only, module = ModuleSpec("nvidia.dali", None), ModuleSpec("nvidia.dali", None, origin="__init__.py")
    nvidia = ModuleSpec("nvidia", None)  # of other packages
    for there in ({}, {"nvidia": nvidia}, {"nvidia": nvidia, "nvidia.dali": folder_only}):
        monkeypatch.setattr(libraries, "find_spec", there.get)
        with pytest.raises(MissingError, match="decoder dali: package not installed; run `uv pip install nvidia-dali"):
            described(loaded)
    monkeypatch.setattr(libraries, "find_spec", {"nvidia": nvidia, "nvidia.dali": module}.get)
    assert described(loaded)


def test_an_nvimagecodec_that_needs_a_driver_is_missed_with_the_command_that_installs_a_newer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(there: dict[str, str]) -> str:
        def version(package: str) -> str:
            if package not in there:
                raise PackageNotFoundError(package)
            return there[package]

        monkeypatch.setattr(nvimagecodec, "version", version)
        return described(suite(tmp_path, "dataset: {root: photos}\nsweep: {decoder: [pillow, nvimagecodec]}\n"))

    folder(tmp_path, 1)
    for there in ({}, {"nvidia-nvimgcodec-cu13": "0.8.0.22"}):
        with pytest.raises(MissingError, match="run `uv pip install 'nvidia-nvimgcodec-cu13"):
            told(there)
    for package in ("nvidia-nvimgcodec-cu13", "nvidia-nvimgcodec-cu12"):
        assert told({package: "0.10.1.3"})


def test_without_that_decoder_nobody_looks_for_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path, 1)
    monkeypatch.setattr(image_folder, "find_spec", lambda _: None)
    assert described(suite(tmp_path, "dataset: {root: photos}\n"))


@pytest.mark.parametrize(
    ("kind", "accelerator", "resolved"),
    [("auto", True, "model"), ("auto", False, "emulated"), ("model", True, "model"), ("none", False, "none")],
)
def test_auto_is_a_training_step_where_there_is_an_accelerator(kind: str, accelerator: bool, resolved: str) -> None:
    options = Suite.model_validate({"consumer": {"kind": kind}}).consumer
    assert resolve_consumer(options, accelerator=accelerator) == resolved


def test_a_model_needs_an_accelerator() -> None:
    with pytest.raises(MissingError, match="needs a CUDA device"):
        resolve_consumer(Suite.model_validate({"consumer": {"kind": "model"}}).consumer, accelerator=False)


def bad(tmp_path: Path, files: list[int], text: str = "") -> Any:
    """Thirty files, of which `files` cannot be decoded: the inputs left, the decoders asked, and the messages."""
    asked: list[list[str]] = []

    def ask(_: object, paths: list[str], decoders: list[str], *, timeout_s: float) -> dict[str, str]:
        asked.append(decoders)
        return {paths[number]: f"OSError: {paths[number]} is cut" for number in files}

    chosen = suite(tmp_path, text or "dataset: {root: photos, skip_bad: true}\n").suite
    samples = tuple((f"/data/photos/class{n // 5}/{n:02}.jpg", n // 5) for n in range(30))
    summary = DatasetSummary("photos", 30, 6, 30, not_measured={"bad_files": "not asked", "x": "y"})
    hears = Hears()
    return chosen.dataset.without_bad(Inputs(samples, summary), chosen.sweep, ask, hears), asked, hears.said


def test_what_cannot_be_decoded_is_left_out_and_named_below_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, asked, said = bad(tmp_path, [7, 2])
    assert (len(found.samples), found.summary.files, found.summary.bad_files) == (28, 28, 2)
    assert found.summary.bad_images == ("class0/02.jpg: OSError: ... is cut", "class1/07.jpg: OSError: ... is cut")
    assert found.summary.not_measured == {"x": "y"}
    assert asked == [["pillow"]]
    assert "30 files" in said[0]


def test_of_many_the_first_twenty_are_named(tmp_path: Path) -> None:
    found, _, _ = bad(tmp_path, list(range(25)))
    assert (found.summary.bad_files, len(found.summary.bad_images), NAMED) == (25, 20, 20)


def test_where_nothing_can_be_decoded_nothing_is_measured(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"none of 30 files can be decoded; class0/00.jpg"):
        bad(tmp_path, list(range(30)))


@pytest.mark.parametrize(
    ("text", "decoders"),
    [
        ("dataset: {root: photos, skip_bad: true, decoder: pillow_lazy}\n", ["pillow"]),
        (
            "dataset: {root: photos, skip_bad: true}\nsweep: {decoder: [torchvision, pillow]}\n",
            ["pillow", "torchvision"],
        ),
    ],
)
def test_every_decoder_of_the_suite_is_asked_once(tmp_path: Path, text: str, decoders: list[str]) -> None:
    assert bad(tmp_path, [1], text)[1] == [decoders]


@pytest.mark.parametrize("text", ["dataset: {root: photos}\n", 'dataset: {kind: target, target: "a:b"}\n'])
def test_where_the_suite_does_not_ask_nothing_is_decoded(tmp_path: Path, text: str) -> None:
    found, asked, said = bad(tmp_path, [1], text)
    assert (len(found.samples), asked, said) == (30, [], [])


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "skipped 1 file that"), (3, "skipped 3 files that"), (4, "and 1 more"), (1_234, "and 1,231 more")],
)
def test_a_reader_is_told_how_many_were_left_out_and_the_first_three(count: int, said: str) -> None:
    named = tuple(f"{n}.jpg: cut" for n in range(min(count, NAMED)))
    (note,) = notes_left_out(RunInputs({(): Inputs((), DatasetSummary("x", bad_files=count, bad_images=named))}))
    assert said in note
    assert note.count(".jpg") == min(count, 3)
    assert ("more" in note) == (count > 3)


def test_where_none_was_left_out_nothing_is_told() -> None:
    for none in (DatasetSummary("x", bad_files=0), DatasetSummary("x")):
        assert notes_left_out(RunInputs({(): Inputs((), none)})) == []


def test_each_folder_has_a_note_of_its_own_on_what_was_left_out() -> None:
    found = {
        (name,): Inputs((), DatasetSummary(f"images in {name}", bad_files=count, bad_images=("1.jpg: cut",) * count))
        for name, count in (("a", 2), ("b", 0), ("c", 1))
    }
    assert notes_left_out(RunInputs(found)) == [
        "skipped 2 files of images in a that cannot be decoded: 1.jpg: cut; 1.jpg: cut",
        "skipped 1 file of images in c that cannot be decoded: 1.jpg: cut",
    ]
    assert RunInputs(found).summary.bad_images[-1] == "images in c: 1.jpg: cut"


def test_several_folders_have_no_folder_in_common() -> None:
    found = {(name,): Inputs((), DatasetSummary(f"images in {name}", root=f"/{name}")) for name in "ab"}
    summary = RunInputs(found).summary
    assert (summary.root, summary.not_measured["root"]) == (None, "differs between the values of an axis")


def test_fewer_files_than_ranks_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    suite = tmp_path / "s.yaml"
    suite.write_text("dataset: {generate: {images: 3}}\nsweep: {ranks: [1, 4]}\n")
    with pytest.raises(MissingError, match="4 ranks, but only 3 files"):
        check_samples(load_suite(suite), RunInputs({(): Inputs((("a", 0), ("b", 0), ("c", 0)), DatasetSummary(""))}))


def test_each_folder_of_an_axis_has_its_own_files(tmp_path: Path, hears: Hears, warmed: list[str]) -> None:
    folder(tmp_path, 2, 3)
    (tmp_path / "photos").rename(tmp_path / "one")
    folder(tmp_path, 4)
    loaded = suite(tmp_path, "sweep: {root: [one, photos], sample: [3, null]}\n")
    found = run_inputs.prepare_inputs(loaded, hears)  # type: ignore[arg-type]
    dataset = loaded.suite.dataset
    counts = {
        (root, sample): len(found.samples(dataset.with_axes({"root": root, "sample": sample})))
        for root in ("one", "photos")
        for sample in (3, None)
    }
    assert counts == {("one", 3): 3, ("one", None): 5, ("photos", 3): 3, ("photos", None): 4}
    assert len(warmed) == sum(counts.values())
    summary = found.summary
    assert (summary.files, summary.bad_files) == (None, None)
    assert summary.not_measured["files"] == "differs between the values of an axis"
    assert summary.not_measured["bad_files"] == "not checked: dataset.skip_bad is off"
    assert summary.description == described(loaded)
    assert "5 images of 2 classes in one; " in summary.description


def test_the_folder_of_the_baseline_is_read_too(tmp_path: Path, hears: Hears, warmed: list[str]) -> None:
    folder(tmp_path, 2)
    (tmp_path / "photos").rename(tmp_path / "today")
    folder(tmp_path, 1)
    loaded = suite(tmp_path, "sweep: {root: [photos]}\nbaseline: {root: today}\n")
    found = run_inputs.prepare_inputs(loaded, hears)  # type: ignore[arg-type]
    assert sorted(len(one.samples) for one in found.of_choice.values()) == [1, 2]


def test_no_photos_are_generated_if_every_config_has_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path, 1)
    monkeypatch.setattr(photos, "cached_photos", lambda **_: pytest.fail("generated"))
    loaded = suite(tmp_path, "sweep: {root: [photos]}\nmeasure: {cache: cold}\n")
    assert [*run_inputs.prepare_inputs(loaded, Hears()).of_choice]  # type: ignore[arg-type]


@pytest.mark.parametrize(("axis", "count"), [("skip_bad: [true]", 28), ("skip_bad: [false]", 30)])
def test_bad_files_are_left_out_where_the_axis_says_so(tmp_path: Path, axis: str, count: int) -> None:
    chosen = suite(tmp_path, f"dataset: {{root: photos}}\nsweep: {{{axis}}}\n").suite
    samples = tuple((f"/data/photos/class0/{n:02}.jpg", 0) for n in range(30))
    (dataset,) = run_inputs.choices_of_data(chosen)
    inputs = RunInputs({dataset.choice_of_data: Inputs(samples, DatasetSummary("photos", 30, 1, 30))})

    def ask(*_: object, **__: object) -> dict[str, str]:
        return {samples[3][0]: "cut", samples[7][0]: "cut"}

    left = run_inputs.without_bad(inputs, chosen, ask, Hears())  # type: ignore[arg-type]
    assert len(left.samples(dataset)) == count
