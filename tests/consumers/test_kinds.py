"""Consumer kinds: which one `auto` picks, when one is refused, and which options each takes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from loaderbench.consumers import (
    CONSUMER_KINDS,
    LOOP,
    ConsumerKind,
    OptionProblem,
    consumer_kind,
    consumer_of,
    ignored_options,
    make_consumer,
    needs_accelerator,
    option_problems,
    resolve_consumer,
    who_takes,
)
from loaderbench.consumers.model import classifiers
from loaderbench.consumers.none import Nothing
from loaderbench.errors import MissingError, SuiteError
from loaderbench.runner.probe import targets_of
from loaderbench.store import read_run
from loaderbench.suite import Suite, load_suite

EXAMPLE = Path(__file__).parents[2] / "reports" / "examples" / "two-cores"


def section(**options: Any) -> BaseModel:
    """The section `consumer` of a suite."""
    return Suite.model_validate({"consumer": options}).consumer


@pytest.mark.parametrize(
    ("options", "ranks", "gpus", "said"),
    [
        ({}, 4, 1, "4 ranks need 4 GPUs, and this machine has 1 GPU"),
        ({}, 4, 4, ""),
        ({"device": "cuda:1"}, 2, 4, "consumer.device: cuda:1 is one GPU"),
        ({"device": "cpu"}, 64, 0, ""),
        ({"cuda_graphs": True}, 2, 2, "consumer.cuda_graphs cannot be combined with ranks"),
        ({"data_parallel": True}, 2, 2, "consumer.data_parallel cannot be combined with ranks"),
    ],
)
def test_ranks_need_a_gpu_each(options: dict[str, Any], ranks: int, gpus: int, said: str) -> None:
    why = consumer_of(section(kind="model", **options), "model").why_not_in_ranks(ranks, gpus)
    assert why.startswith(said)
    assert bool(why) == bool(said)


@pytest.mark.parametrize(("accelerator", "kind"), [(True, "model"), (False, "emulated")])
def test_auto_is_one_kind_with_an_accelerator_and_one_without(accelerator: bool, kind: str) -> None:
    assert resolve_consumer(section(kind="auto"), accelerator=accelerator) == kind


@pytest.mark.parametrize("accelerator", [True, False])
def test_auto_emulates_a_gpu_that_is_named_even_beside_a_real_one(accelerator: bool) -> None:
    assert resolve_consumer(section(kind="auto", accelerator="a100"), accelerator=accelerator) == "emulated"
    assert resolve_consumer(section(kind="none"), accelerator=accelerator) == "none"


@pytest.mark.parametrize("accelerator", [True, False])
def test_auto_trains_on_the_cpu_where_that_is_named_with_or_without_a_gpu(accelerator: bool) -> None:
    asked = section(kind="auto", device="cpu", model="squeezenet1_1")
    assert resolve_consumer(asked, accelerator=accelerator) == "model"
    assert not needs_accelerator(asked)
    assert type(make_consumer(asked, "model", {}, Path(), lambda: 0.0)).__name__ == "TrainingStep"
    assert [problem.option for problem in option_problems(section(device="cpu", precision="tf32"))] == ["precision"]


@pytest.mark.parametrize("accelerator", [True, False])
def test_auto_calls_a_step_that_is_named_with_or_without_a_gpu(accelerator: bool) -> None:
    asked = section(target="mine:step")
    assert resolve_consumer(asked, accelerator=accelerator) == "target"
    assert not list(option_problems(asked))
    (problem,) = option_problems(section(target="mine:step", accelerator="a100"))
    assert problem.what == "options of emulated and of target are set; set `kind` to one of them"
    (problem,) = option_problems(section(kind="emulated", target="mine:step"))
    assert problem == OptionProblem("target", "has no effect on `kind: emulated`; use `kind: target`, or drop it", True)


def test_a_step_named_without_a_kind_is_known_before_the_run() -> None:
    own = Suite.model_validate({"consumer": {"target": "mine:step", "demand": 500}})
    assert targets_of(own) == ["mine:step"]
    (ignored,) = ignored_options(own.consumer)
    assert (ignored.option, ignored.what) == (
        "demand",
        "ignored: an option of `kind: emulated`, not of `kind: target`",
    )


def test_nothing_is_ignored_while_the_machine_decides_the_kind() -> None:
    assert not list(ignored_options(section(demand=1000, model="resnet50")))


def test_options_that_ask_for_two_kinds_need_one_of_them_to_be_named() -> None:
    (problem,) = option_problems(section(device="cpu", accelerator="a100"))
    assert problem.what == "options of emulated and of model are set; set `kind` to one of them"
    assert not list(option_problems(section(kind="emulated", accelerator="a100")))


def test_a_kind_that_needs_an_accelerator_is_refused_without_one() -> None:
    assert resolve_consumer(section(kind="model"), accelerator=True) == "model"
    with pytest.raises(MissingError, match=r"consumer\.kind: model needs a CUDA device"):
        resolve_consumer(section(kind="model"), accelerator=False)


def test_of_a_kind_that_is_not_registered_here_is_said_what_holds_of_any() -> None:
    assert consumer_kind("of_another_version") is ConsumerKind
    assert consumer_kind("of_another_version").who == "consumer"


def test_a_loop_is_no_kind_that_a_suite_can_name() -> None:
    assert consumer_kind(LOOP).of_loop
    assert LOOP not in CONSUMER_KINDS


def test_the_kinds_that_a_demand_caps_are_those_that_assume_one() -> None:
    assert {name for name in CONSUMER_KINDS if consumer_of(section(), name).assumed_demand(Path())} == {
        name for name, kind in CONSUMER_KINDS.items() if kind.capped
    }


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({}, []),
        ({"kind": "target"}, [None]),
        ({"kind": "target", "target": "mine:step"}, []),
        ({"kind": "emulated", "precision": "fp32"}, ["precision"]),
        ({"kind": "emulated", "accelerator": "a100", "precision": "tf32"}, []),
        ({"accelerator": "a100", "demand": 5.0}, ["accelerator"]),
        ({"kind": "model", "accelerator": "a100"}, ["accelerator"]),
        ({"kind": "target", "accelerator": "a1000"}, ["accelerator", "accelerator", None]),
        ({"accelerator": ""}, ["accelerator"]),
    ],
)
def test_each_kind_says_what_is_wrong_with_the_options(options: dict[str, Any], wrong: list[str | None]) -> None:
    assert [problem.option for problem in option_problems(section(**options))] == wrong


def test_what_a_kind_finds_wrong_is_said_at_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Picky(Nothing):
        def problems(self, *, chosen: bool) -> Iterator[OptionProblem]:
            yield OptionProblem("demand", f"not wanted: {chosen}")
            yield OptionProblem("kind", "and a second", at_key=True)

    monkeypatch.setitem(CONSUMER_KINDS, "none", Picky)
    (tmp_path / "s.yaml").write_text("consumer:\n  demand: 5\n  kind: none\n")
    with pytest.raises(SuiteError, match=r"s\.yaml:2:11: consumer\.demand: not wanted: True \(and 1 more\)"):
        load_suite(tmp_path / "s.yaml")


def test_a_consumer_gets_its_own_options_of_the_section() -> None:
    options = section(demand=7.0, model="resnet18")
    emulated = {"demand": 7.0, "accelerator": None, "model": "resnet18", "precision": None, "calibration": None}
    emulated |= {"host_cpu_s_per_sample": None, "host_threads": 1, "blocking": False}
    assert consumer_of(options, "emulated").model_dump() == emulated
    step = consumer_of(options, "model").model_dump()
    assert (step["model"], step["device"]) == ("resnet18", "cuda")
    assert "demand" not in step


def test_a_step_that_trains_on_the_cpu_is_no_gpu() -> None:
    def who(**consumer: Any) -> str:
        return who_takes(replace(read_run(EXAMPLE), consumer=consumer["kind"], suite={"consumer": consumer}))

    assert [who(kind="model", device=device) for device in ("cpu", "cuda:1")] == ["training step", "GPU"]
    assert who(kind="emulated", device="cpu") == "emulated GPU"


def test_the_names_of_classifiers_are_those_of_torchvision() -> None:
    models = pytest.importorskip("torchvision").models
    assert [*classifiers()] == sorted(models.list_models(module=models))


@pytest.mark.parametrize(
    ("options", "is_unknown"),
    [
        ({"model": "nope"}, True),
        ({"kind": "model", "model": "nope"}, True),
        ({"device": "cpu", "model": "ViT-S/16"}, True),
        ({"model": "ViT-S/16"}, False),  # it has a published rate
        ({"model": "ResNet18"}, False),
        ({"kind": "none", "model": "nope"}, False),  # a warning says that it has no effect
    ],
)
def test_a_model_that_torchvision_has_not_is_a_problem_where_it_may_train(
    options: dict[str, str], is_unknown: bool
) -> None:
    consumer = Suite.model_validate({"consumer": options}).consumer
    assert ("model" in {found.option for found in option_problems(consumer)}) is is_unknown


def test_without_torchvision_no_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    assert classifiers.__wrapped__() == ()
