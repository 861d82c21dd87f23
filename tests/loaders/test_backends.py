"""A suite's loader backends: each gets its own arguments, and an axis that one does not take is one value there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from loaderbench.errors import SuiteError
from loaderbench.loaders import LOADER_BACKENDS, Batches, LoaderBackend, backends_of, own_arguments
from loaderbench.options import Check, integer
from loaderbench.plan import make_plan
from loaderbench.records import Config
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
    assert plan.collapsed == {"threads": "no effect with loader=torch: one configuration for all values"}
    assert plan.baseline == {"loader": "torch", "threads": None}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("sweep: {num_workers: [0, 1]}", "DataLoader's defaults"),
        ("sweep: {batch_size: [4]}", "DataLoader's defaults with the smallest batch size of the sweep"),
        ("sweep: {loader: [pool], threads: [2, 1]}", "the first value of each axis"),
        ("loader: {loader: pool}\nsweep: {threads: [2, 1]}", "the first value of each axis"),
        ("sweep: {num_workers: [0, 1]}\nbaseline: {num_workers: 1}", "set in the suite"),
    ],
)
def test_the_baseline_says_whose_defaults_it_has(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "s.yaml").write_text(f"dataset: {{kind: target, target: 'm:f'}}\n{text}")
    plan = make_plan(load_suite(tmp_path / "s.yaml").suite, cpus_allotted=2, accelerator=False)
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
            "sweep.num_workers: unknown axis; neither a pool argument",
        ),
    ],
)
def test_an_argument_that_no_backend_of_the_suite_takes_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in problem(tmp_path, text)


def test_a_value_has_to_fit_one_of_the_backends_that_take_it(tmp_path: Path) -> None:
    assert configurations(tmp_path, "sweep: {loader: [torch, pool], batch_size: [128]}")
    assert "expected an integer from 1 to 64" in problem(tmp_path, "loader: {loader: pool, batch_size: 128}")
