"""Which settings of two runs make them incomparable, and which only cast doubt on what changed."""

from dataclasses import replace
from typing import Any

import pytest
from test_comparison import run

from loaderbench.records import Comparison, DatasetSummary, PlanSummary, RunRecord
from loaderbench.statistics.comparison import compare_runs
from loaderbench.statistics.gates import judge_gate, parse_gate

TARGET = {"kind": "target", "target": "mine:make", "args": {"root": "/data/a", "size": 224}}


def of_suite(**parts: Any) -> RunRecord:
    suite = {"consumer": {"demand": 1000.0}, "measure": {"cache": "warm"}, **parts}
    return run({0: [100, 101, 102]}, suite=suite, dataset=DatasetSummary("target mine:make"))


def compare_args(**changed: Any) -> Comparison:
    args = {name: value for name, value in {**TARGET["args"], **changed}.items() if value != "left out"}  # type: ignore[dict-item]
    return compare_runs(of_suite(dataset=TARGET), of_suite(dataset={**TARGET, "args": args}))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"root": "/data/b"}, "dataset.args.root: /data/a \N{RIGHTWARDS ARROW} /data/b"),
        ({"size": 448}, "dataset.args.size: 224 \N{RIGHTWARDS ARROW} 448"),
        ({"size": "left out"}, "dataset.args.size: 224 \N{RIGHTWARDS ARROW} not set"),
        ({"parts": ["a", "b"]}, 'dataset.args.parts: not set \N{RIGHTWARDS ARROW} ["a", "b"]'),
        ({"cached": True}, "dataset.args.cached: not set \N{RIGHTWARDS ARROW} true"),
    ],
)
def test_other_arguments_of_a_target_are_other_data(changed: dict[str, Any], said: str) -> None:
    found = compare_args(**changed)
    assert found.outcome == "incomparable"
    assert found.reasons == (f"dataset argument {said}",)
    gate = parse_gate("samples_per_s:-5%", "--fail-if")
    assert judge_gate(gate, of_suite(), found).outcome == "inconclusive"


def test_a_run_and_the_later_version_of_two_are_compared_with_a_doubt() -> None:
    before = replace(of_suite(), kind="ab")
    before = replace(before, trials=tuple(replace(trial, role="ab", side="after") for trial in before.trials))
    found = compare_runs(before, of_suite())
    assert found.outcome == "within noise"
    assert found.reasons == ("kind of run: ab \N{RIGHTWARDS ARROW} run",)


@pytest.mark.parametrize(
    ("name", "changed", "reason"),
    [
        ("model", {"model": "resnet18"}, "consumer option consumer.model: resnet50 \N{RIGHTWARDS ARROW} resnet18"),
        (
            "target",
            {"target": "mine:other"},
            "consumer option consumer.target: mine:step \N{RIGHTWARDS ARROW} mine:other",
        ),
        ("model", {"demand": 1.0}, ""),  # of an emulated step
        ("emulated", {"model": "resnet18"}, ""),
    ],
)
def test_another_training_step_is_another_consumer(name: str, changed: dict[str, Any], reason: str) -> None:
    step = {"kind": name, "model": "resnet50", "target": "mine:step", "demand": 1000.0}
    one, other = (replace(of_suite(consumer=found), consumer=name) for found in (step, {**step, **changed}))
    assert compare_runs(one, other).reasons == ((reason,) if reason else ())
    assert (compare_runs(one, other).outcome == "incomparable") is bool(reason)
    older = replace(one, suite={"consumer": {"kind": name, "demand": 1000.0}})
    assert compare_runs(older, other).outcome != "incomparable", "options that a run does not have are unknown"


def test_equal_arguments_in_another_order_are_the_same_data() -> None:
    args = {"size": 224, "root": "/data/a"}
    found = compare_runs(of_suite(dataset=TARGET), of_suite(dataset={**TARGET, "args": args}))
    assert (found.outcome, found.reasons) == ("within noise", ())


def test_of_long_values_the_part_that_differs_is_shown() -> None:
    then, now = ({**TARGET, "args": {"files": [*["a.jpg"] * 99, last]}} for last in ("b.jpg", "c.jpg"))
    (reason,) = compare_runs(of_suite(dataset=then), of_suite(dataset=now)).reasons
    assert '"b.jpg"] \N{RIGHTWARDS ARROW} ' in reason
    assert reason.endswith('"c.jpg"]')
    assert len(reason) < 150
    (reason,) = compare_args(root="x" * 999).reasons
    assert len(reason) < 200


def test_an_argument_that_is_an_axis_of_the_runs_is_compared_by_configuration() -> None:
    sizes = [
        replace(
            of_suite(dataset={**TARGET, "args": {"num_workers": n}}),
            plan=PlanSummary({"num_workers": [0]}, 1, 3, 3, (), {}, ""),
        )
        for n in (1, 2)
    ]
    assert compare_runs(*sizes).outcome == "within noise"


def test_fewer_files_of_the_same_folder_are_other_data() -> None:
    before = run({0: [100, 101, 102]}, dataset=DatasetSummary("512 synthetic JPEGs", files=512))
    after = replace(before, dataset=replace(before.dataset, files=100))
    found = compare_runs(before, after)
    assert found.outcome == "incomparable"
    assert found.reasons == ("number of files: 512 \N{RIGHTWARDS ARROW} 100",)
    assert compare_runs(before, replace(before, dataset=replace(before.dataset, files=None))).outcome == "within noise"


TEN = DatasetSummary("10 images of 2 classes in ph", files=10, classes=2, total_files=10, root="/data/ph")


def compare_folders(**changed: Any) -> Comparison:
    before = run({0: [100, 101, 102]}, dataset=TEN)
    return compare_runs(before, replace(before, dataset=replace(TEN, **changed)))


def test_one_folder_is_the_same_data_however_its_path_is_written() -> None:
    found = compare_folders(description="10 images of 2 classes in /data/ph")
    assert (found.outcome, found.reasons) == ("within noise", ())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"files": 12, "total_files": 10}, "number of files: 10 \N{RIGHTWARDS ARROW} 12"),
        ({"classes": 3}, "number of classes: 2 \N{RIGHTWARDS ARROW} 3"),
        ({"total_files": 11}, "number of files in the folder: 10 \N{RIGHTWARDS ARROW} 11"),
        ({"total_files": None}, "number of files in the folder: 10 \N{RIGHTWARDS ARROW} unknown"),
    ],
)
def test_other_files_in_one_folder_are_other_data(changed: dict[str, Any], said: str) -> None:
    found = compare_folders(description="images in /data/ph", **changed)
    assert (found.outcome, found.reasons) == ("incomparable", (said,))


def test_one_relative_path_in_two_places_is_compared_with_a_doubt_that_names_both() -> None:
    found = compare_folders(root="/checkout/ph")
    assert found.outcome == "within noise"
    assert found.reasons == ("image folder: /data/ph \N{RIGHTWARDS ARROW} /checkout/ph",)


@pytest.mark.parametrize("root", ["/checkout/ph", None])
def test_two_paths_that_are_written_differently_are_other_data_unless_they_are_one_folder(root: str | None) -> None:
    found = compare_folders(description="10 images of 2 classes in other", root=root)
    assert found.outcome == "incomparable"
    assert found.reasons[0].startswith("dataset: 10 images of 2 classes in ph")


def test_a_run_of_an_earlier_version_without_the_folder_is_compared_by_its_description() -> None:
    found = compare_folders(root=None)
    assert (found.outcome, found.reasons) == ("within noise", ())


def test_another_sample_size_that_takes_the_same_files_is_no_difference() -> None:
    both = (of_suite(dataset={"kind": "image_folder", "root": "photos", "sample": sample}) for sample in (20_000, None))
    assert compare_runs(*both).reasons == ()


@pytest.mark.parametrize(
    ("part", "then", "now", "said"),
    [
        (
            "loader",
            {"shuffle": True},
            {"shuffle": False},
            "loader argument shuffle: true \N{RIGHTWARDS ARROW} false",
        ),
        ("loader", {}, {"batch_size": 64}, "loader argument batch_size: not set \N{RIGHTWARDS ARROW} 64"),
        (
            "dataset",
            {"kind": "image_folder", "decoder": "pillow"},
            {"kind": "image_folder", "decoder": "simplejpeg"},
            "dataset option dataset.decoder: pillow \N{RIGHTWARDS ARROW} simplejpeg",
        ),
    ],
)
def test_other_fixed_settings_are_a_doubt_that_is_named(part: str, then: Any, now: Any, said: str) -> None:
    found = compare_runs(of_suite(**{part: then}), of_suite(**{part: now}))
    assert found.outcome == "within noise"
    assert found.reasons == (said,)


def test_a_fixed_setting_that_one_run_swept_is_no_doubt() -> None:
    found = compare_runs(of_suite(loader={"num_workers": 2}), of_suite())
    assert found.reasons == ()


@pytest.mark.parametrize(("axes", "outcome"), [({"root": ["/a", "/b"]}, "within noise"), ({}, "incomparable")])
def test_folders_of_an_axis_are_compared_one_by_one(axes: dict[str, Any], outcome: str) -> None:
    then, now = (
        replace(
            run({0: [100, 101, 102]}, suite={"dataset": {"kind": "image_folder"}}, dataset=DatasetSummary(described)),
        )
        for described in ("images in /a", "images in /a; images in /b")
    )
    both = [replace(one, plan=replace(one.plan, axes={**one.plan.axes, **axes})) for one in (then, now)]
    assert compare_runs(*both).outcome == outcome


def test_an_argument_of_a_target_that_is_named_like_an_option_says_nothing_of_another_target() -> None:
    then, now = (of_suite(dataset={**TARGET, "target": name}) for name in ("mine:make", "mine:other"))
    now = replace(now, dataset=DatasetSummary("target mine:other"))
    both = [replace(one, plan=replace(one.plan, axes={**one.plan.axes, "root": ["a"]})) for one in (then, now)]
    assert compare_runs(*both).outcome == "incomparable"


@pytest.mark.parametrize(
    ("part", "axis", "then", "now"),
    [
        ("args", "target", {"size": 224}, {"size": 512}),
        ("generate", "skip_bad", {"images": 512}, {"images": 5000}),
    ],
)
def test_an_axis_of_data_hides_no_other_difference_of_the_data(part: str, axis: str, then: Any, now: Any) -> None:
    kind = "target" if axis == "target" else "image_folder"
    both = (of_suite(dataset={"kind": kind, part: value}) for value in (then, now))
    first, second = (replace(one, plan=replace(one.plan, axes={**one.plan.axes, axis: [0, 1]})) for one in both)
    assert compare_runs(first, first).outcome == "within noise"
    assert compare_runs(first, second).outcome == "incomparable"
