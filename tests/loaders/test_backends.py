"""A suite's loader backends: each gets its own arguments, and an axis that one does not take is one value there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from loaderbench.datasets import DatasetOrder
from loaderbench.errors import MissingError, SuiteError
from loaderbench.formats import FORMATS
from loaderbench.loaders import (
    LOADER_BACKENDS,
    Batches,
    LoaderBackend,
    backends_of,
    check_installed,
    own_arguments,
)
from loaderbench.options import Check, integer
from loaderbench.plan import make_plan
from loaderbench.records import Config
from loaderbench.session.conditions import format_of
from loaderbench.suite import load_suite


class Pool(LoaderBackend):
    arguments: ClassVar[Mapping[str, Check]] = {"batch_size": integer(1, 64), "threads": integer(1, 8)}

    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        return Batches(source)


def test_a_backend_that_builds_nothing_cannot_be_registered() -> None:
    class Forgot(LoaderBackend):
        pass

    with pytest.raises(TypeError, match="abstract method"):
        Forgot()  # type: ignore[abstract]


@pytest.fixture(autouse=True)
def pool() -> Iterator[None]:
    """A second backend."""
    LOADER_BACKENDS["pool"] = Pool()
    yield
    del LOADER_BACKENDS["pool"]


def configurations(folder: Path, text: str) -> list[Config]:
    (folder / "s.yaml").write_text(f"dataset: {{kind: target, target: 'm:f'}}\n{text}")
    plan = make_plan(load_suite(folder / "s.yaml").suite, cpus_allotted=2, accelerator=False)
    return list(plan.configurations)


def problem(folder: Path, text: str) -> str:
    (folder / "s.yaml").write_text(text)
    with pytest.raises(SuiteError) as raised:
        load_suite(folder / "s.yaml")
    return str(raised.value)


def test_a_suite_without_the_axis_has_configurations_without_it(tmp_path: Path) -> None:
    assert configurations(tmp_path, "sweep: {num_workers: [0, 1]}") == [{"num_workers": 0}, {"num_workers": 1}]


def test_what_a_backend_does_not_take_is_one_configuration_of_it(tmp_path: Path) -> None:
    text = "sweep: {loader: [torch, pool], num_workers: [0, 1], threads: [1, 2], batch_size: [4]}"
    assert configurations(tmp_path, text) == [
        {"loader": "torch", "num_workers": 0, "threads": None, "batch_size": 4},
        {"loader": "torch", "num_workers": 1, "threads": None, "batch_size": 4},
        {"loader": "pool", "num_workers": None, "threads": 1, "batch_size": 4},
        {"loader": "pool", "num_workers": None, "threads": 2, "batch_size": 4},
    ]


def test_the_plan_says_which_backend_takes_no_values_of_an_axis(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("sweep: {loader: [torch, pool], threads: [1, 2]}")
    plan = make_plan(load_suite(tmp_path / "s.yaml").suite, cpus_allotted=2, accelerator=False)
    assert plan.collapsed == {"threads": "no effect with loader=torch: measured once"}
    assert plan.baseline == {"loader": "torch", "threads": None}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("sweep: {num_workers: [0, 1]}", "DataLoader's defaults"),
        ("sweep: {batch_size: [4]}", "DataLoader's defaults with the smallest batch size of the sweep"),
        ("sweep: {loader: [pool], threads: [2, 1]}", "the first value of each axis"),
        ("loader: {loader: pool}\nsweep: {threads: [2, 1]}", "the first value of each axis"),
        ("loader: {loader: threads}\nsweep: {threads: [2, 1]}", "the loader's defaults"),
        ("sweep: {num_workers: [2, 0], pin_memory: [false, true]}", "DataLoader's defaults"),
        ("sweep: {num_workers: [2, 4]}", "the first value of each axis"),
        ("sweep: {pin_memory: [true]}", "the first value of each axis"),
        ("sweep: {foo: auto}", "the first value of each axis"),
        ("sweep: {num_workers: [0, 2], foo: [1, 2]}", "DataLoader's defaults, and the first value of each other axis"),
        (
            "sweep: {num_workers: [2], batch_size: [8, 4]}",
            "the first value of each axis with the smallest batch size of the sweep",
        ),
        ("loader: {num_workers: 4}\nsweep: {batch_size: [8, 4]}", "the smallest batch size of the sweep"),
        ("loader: {num_workers: 4}", "the only config"),
        ("name: s", "DataLoader's defaults"),
        ("sweep: {num_workers: [0, 1]}\nbaseline: {num_workers: 1}", "set in the suite"),
    ],
)
def test_the_baseline_says_whose_defaults_it_has(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "s.yaml").write_text(f"dataset: {{kind: target, target: 'm:f'}}\n{text}")
    plan = make_plan(load_suite(tmp_path / "s.yaml").suite, cpus_allotted=2, accelerator=True)
    assert plan.baseline_why == why


def test_a_backend_gets_its_own_arguments_and_those_that_nobody_knows() -> None:
    arguments = {"loader": "pool", "batch_size": 4, "threads": 2, "num_workers": None, "of_the_target": 1}
    both = backends_of({}, {"loader": ["torch", "pool"]})
    assert own_arguments(arguments, both.values()) == {"batch_size": 4, "threads": 2, "of_the_target": 1}


def test_a_backend_that_is_not_there_is_refused_with_the_nearest(tmp_path: Path) -> None:
    assert "or pool, got 'pol'; did you mean pool?" in problem(tmp_path, "loader: {loader: pol}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("loader: {threads: 2}", "loader.threads: unknown DataLoader argument"),
        ("loader: {loader: pool, num_workers: 2}", "loader.num_workers: unknown pool argument"),
        (
            "sweep: {loader: [torch, pool], thread: [1]}",
            "sweep.thread: unknown axis; neither a DataLoader or pool argument",
        ),
        (
            "loader: {loader: pool}\nsweep: {num_workers: auto}",
            "sweep.num_workers: auto needs one of these under loader: torch, ",
        ),
    ],
)
def test_an_argument_that_no_backend_of_the_suite_takes_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in problem(tmp_path, text)


def test_a_value_has_to_fit_one_of_the_backends_that_take_it(tmp_path: Path) -> None:
    assert configurations(tmp_path, "sweep: {loader: [torch, pool], batch_size: [128]}")
    assert "expected an integer from 1 to 64" in problem(tmp_path, "loader: {loader: pool, batch_size: 128}")


class OfTar(Pool):
    """Reads one format."""

    format: ClassVar[str] = "tar"


@pytest.fixture
def of_tar() -> Iterator[None]:
    LOADER_BACKENDS["of_tar"] = OfTar()
    yield
    del LOADER_BACKENDS["of_tar"]


@pytest.mark.usefixtures("of_tar")
def test_what_a_loader_of_one_format_ignores_is_one_configuration_of_it(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "sweep: {loader: [torch, of_tar], format: [files, zip], image_cache: [null, shared_memory], decoder: [pillow]}"
    )
    suite = load_suite(tmp_path / "s.yaml").suite
    configs = make_plan(suite, cpus_allotted=2, accelerator=False).configurations
    assert [config for config in configs if config["loader"] == "of_tar"] == [
        {"loader": "of_tar", "format": "files", "image_cache": None, "decoder": "pillow"}
    ]
    read = [format_of(config, suite) for config in configs]
    assert read == ["files", "files", "zip", "files", "tar"]  # decoded images are kept after one look at the files


@pytest.mark.usefixtures("of_tar")
def test_a_loader_of_one_format_needs_files(tmp_path: Path) -> None:
    of_a_target = "dataset: {kind: target, target: 'm:f'}\n"
    said = problem(tmp_path, of_a_target + "sweep: {loader: [torch, of_tar]}")
    assert said.endswith("sweep.loader: of_tar reads files as tar: it needs `kind: image_folder`")
    names = {config["loader"] for config in configurations(tmp_path, "sweep: {loader: auto}")}
    assert {"torch", "pool"} <= names
    assert "of_tar" not in names


@pytest.mark.usefixtures("of_tar")
def test_a_loader_whose_format_needs_a_library_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FORMATS["tar"].__class__, "needs", "not_there")
    monkeypatch.setattr(FORMATS["tar"].__class__, "install", "uv pip install not-there")
    with pytest.raises(MissingError, match=r"^format tar: not_there is not installed; run `uv pip install not-there`$"):
        check_installed({"of_tar": LOADER_BACKENDS["of_tar"]})
    assert "of_tar" not in backends_of({}, {"loader": "auto"})


def test_a_loader_that_decodes_by_itself_gets_the_files_whatever_the_format(tmp_path: Path) -> None:
    LOADER_BACKENDS["decoding"] = type("Decoding", (Pool,), {"decodes": True})()
    try:
        (tmp_path / "s.yaml").write_text("dataset: {format: tar}\nsweep: {loader: [torch, decoding]}")
        suite = load_suite(tmp_path / "s.yaml").suite
        configs = make_plan(suite, cpus_allotted=2, accelerator=False).configurations
        assert [format_of(config, suite) for config in configs] == ["tar", "files"]
        made = suite.dataset.build(DatasetOrder((("a.jpg", 0),), configs[1], tmp_path)).source
        assert made.encoded(0) == "a.jpg"
    finally:
        del LOADER_BACKENDS["decoding"]


def test_options_that_cannot_be_combined_are_left_out_of_the_plan_or_refused(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("sweep: {storage: ['s3://b/x', null], format: [tar, files]}")
    plan = make_plan(load_suite(tmp_path / "s.yaml").suite, cpus_allotted=2, accelerator=False)
    pairs = [(config["storage"], config["format"]) for config in plan.configurations]
    assert sorted(pairs, key=str) == [("s3://b/x", "files"), (None, "files"), (None, "tar")]
    assert plan.baseline in plan.configurations
    assert plan.collapsed == {"dataset": "storage cannot be combined with format"}
    said = problem(tmp_path, "dataset: {storage: 's3://b/x', presize: 256}")
    assert said.endswith("dataset: storage cannot be combined with presize; drop one of them")


def test_decoders_and_transforms_that_do_not_fit_are_left_out_of_the_plan_or_refused(tmp_path: Path) -> None:
    decoders, transforms = "[pillow, torchvision, device]", "[imagenet_eval, imagenet_train_scaled]"
    (tmp_path / "s.yaml").write_text(f"sweep: {{decoder: {decoders}, transform: {transforms}, num_workers: [0]}}")
    plan = make_plan(load_suite(tmp_path / "s.yaml").suite, cpus_allotted=2, accelerator=True)
    pairs = [(config["decoder"], config["transform"]) for config in plan.configurations]
    assert sorted(pairs) == [
        ("device", "imagenet_eval"),
        ("pillow", "imagenet_eval"),
        ("pillow", "imagenet_train_scaled"),
        ("torchvision", "imagenet_eval"),
    ]
    assert plan.collapsed["dataset"].count("cannot be combined with transform imagenet_train_scaled") == 2
    said = problem(tmp_path, "dataset: {decoder: torchvision, transform: imagenet_train_scaled}")
    assert said.endswith(
        "decoder torchvision cannot be combined with transform imagenet_train_scaled; drop one of them"
    )
    said = problem(tmp_path, "dataset: {decoder: dali, image_cache: shared_memory}")
    assert said.endswith("decoder dali cannot be combined with image_cache; drop one of them")
