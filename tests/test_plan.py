"""What will be measured is laid out before anything runs."""

from typing import Any

import pytest

from loaderbench.formats import Format
from loaderbench.loaders import LoaderBackend
from loaderbench.loaders.torch_loader import worker_ladder
from loaderbench.plan import isolation_left_out, make_plan
from loaderbench.search import Grid
from loaderbench.suite import Suite


def suite(**parts: object) -> Suite:
    return Suite.model_validate(parts)


def test_the_grid_is_every_combination() -> None:
    plan = make_plan(suite(sweep={"batch_size": [8, 16], "num_workers": [0, 2]}), cpus_allotted=2, accelerator=True)
    assert len(plan.configurations) == 4
    assert plan.collapsed == {}


def test_pinning_collapses_without_an_accelerator_and_says_why() -> None:
    sweep = {"num_workers": [0, 1], "pin_memory": [False, True]}
    plan = make_plan(suite(sweep=sweep), cpus_allotted=2, accelerator=False)
    assert len(plan.configurations) == 2
    assert "without a GPU" in plan.collapsed["pin_memory"]
    assert len(make_plan(suite(sweep=sweep), cpus_allotted=2, accelerator=True).configurations) == 4


def test_what_torch_refuses_without_workers_is_one_configuration() -> None:
    sweep = {"num_workers": [0, 1], "prefetch_factor": [2, 4], "persistent_workers": [False, True]}
    plan = make_plan(suite(sweep=sweep), cpus_allotted=2, accelerator=False)
    alone = [config for config in plan.configurations if config["num_workers"] == 0]
    assert alone == [{"num_workers": 0, "prefetch_factor": None, "persistent_workers": False}]
    assert len(plan.configurations) == 5
    assert set(plan.collapsed) == {"prefetch_factor", "persistent_workers"}


def test_arguments_of_workers_differ_where_the_target_chooses_how_many_there_are() -> None:
    target = {"kind": "target", "target": "m:f"}
    sweep = {"prefetch_factor": [2, 8], "persistent_workers": [False, True]}
    own = suite(dataset=target, sweep=sweep, baseline={"prefetch_factor": 8})
    plan = make_plan(own, cpus_allotted=2, accelerator=False)
    assert len(plan.configurations) == 4
    assert plan.baseline == {"prefetch_factor": 8, "persistent_workers": False}
    none = suite(dataset=target, sweep=sweep, loader={"num_workers": 0})
    assert len(make_plan(none, cpus_allotted=2, accelerator=False).configurations) == 1


@pytest.mark.parametrize(
    ("cpus", "ladder"), [(0.5, [0, 1, 2]), (2, [0, 1, 2, 3]), (8, [0, 1, 2, 4, 8, 12]), (16, [0, 1, 4, 8, 16, 24])]
)
def test_auto_worker_counts_fit_the_available_cpus(cpus: float, ladder: list[int]) -> None:
    assert worker_ladder(cpus) == ladder


def test_the_baseline_is_torch_s_default_unless_the_suite_names_one() -> None:
    sweep = {"batch_size": [64, 16], "num_workers": [2, 0], "pin_memory": [True, False], "decoder": ["pillow"]}
    plan = make_plan(suite(sweep=sweep), cpus_allotted=2, accelerator=True)
    assert plan.baseline == {"batch_size": 16, "num_workers": 0, "pin_memory": False, "decoder": "pillow"}
    named = make_plan(suite(sweep=sweep, baseline={"num_workers": 3}), cpus_allotted=2, accelerator=True)
    assert named.baseline["num_workers"] == 3
    assert named.baseline in named.configurations


def test_values_that_python_takes_for_equal_are_one() -> None:
    target = {"kind": "target", "target": "m:f"}
    plan = make_plan(suite(dataset=target, sweep={"x": [1, True, 1.0, 2]}), cpus_allotted=2, accelerator=False)
    assert [config["x"] for config in plan.configurations] == [1, 2]


def test_a_baseline_that_pins_is_not_measured_without_an_accelerator() -> None:
    given = suite(sweep={"pin_memory": [False, True]}, baseline={"pin_memory": True})
    assert make_plan(given, cpus_allotted=2, accelerator=False).configurations == ({"pin_memory": False},)
    assert make_plan(given, cpus_allotted=2, accelerator=True).baseline == {"pin_memory": True}


def orders(seed: int) -> list[list[str]]:
    plan = make_plan(
        suite(sweep={"batch_size": list(range(1, 9))}, measure={"seed": seed}), cpus_allotted=2, accelerator=False
    )
    search = Grid(plan)
    rounds: list[list[str]] = []
    while found := search.next_round():
        rounds.append([trial.id.partition("-")[2] for trial in found])
    return rounds


def test_each_round_holds_every_configuration_in_an_order_of_its_own_that_the_seed_repeats() -> None:
    first = orders(0)
    assert len(first) == 3
    assert len({tuple(order) for order in first}) == 3
    assert all(sorted(order) == sorted(first[0]) for order in first)
    assert first == orders(0) != orders(1)


def test_the_job_has_the_most_ranks_and_auto_counts_workers_for_one_of_them() -> None:
    plan = make_plan(suite(sweep={"ranks": [1, 4], "num_workers": "auto"}), cpus_allotted=8, accelerator=False)
    assert plan.baseline == {"ranks": 4, "num_workers": 0}
    counts = {ranks: [c["num_workers"] for c in plan.configurations if c["ranks"] == ranks] for ranks in (1, 4)}
    assert counts == {1: worker_ladder(8), 4: worker_ladder(2)}


@pytest.mark.parametrize(
    ("dataset", "sweep", "is_left_out"),
    [
        ({"storage": "s3://b/train"}, {}, True),
        ({"storage": "s3://b/train"}, {"storage": [None, "s3://b/train"]}, False),
        ({}, {"storage": ["s3://b/train", "http://h/train"]}, True),
        ({}, {"storage": [None, "s3://b/train"]}, False),
        ({}, {"storage": "s3://b/train"}, True),
        ({}, {}, False),
    ],
)
def test_no_page_cache_is_emptied_where_all_files_come_from_a_store(
    dataset: dict[str, str], sweep: dict[str, object], is_left_out: bool
) -> None:
    why = isolation_left_out(suite(dataset={"root": "train", **dataset}, sweep=sweep), "none", accelerator=False)
    assert ("object store" in why["loader_cold"]) is is_left_out
    assert bool(why["loader_warm"]) is is_left_out


def test_a_page_cache_matters_to_those_configurations_that_read_local_files() -> None:
    both = suite(dataset={"root": "train"}, sweep={"storage": [None, "s3://b/train"]})
    for storage in (None, "s3://b/train"):
        why = isolation_left_out(both, "none", accelerator=False, config={"storage": storage})
        assert bool(why["loader_cold"]) is (storage is not None)


def test_of_the_loaders_of_one_format_webdataset_alone_is_measured_over_a_store() -> None:
    url = "s3://b/train"
    sweep = {"loader": ["torch", "webdataset", "streaming"], "storage": [None, url], "format": ["files", "tar"]}
    plan = make_plan(suite(dataset={"root": "train"}, sweep=sweep), cpus_allotted=2, accelerator=False)
    found = {(one["loader"], one["storage"], one["format"]) for one in plan.configurations}
    assert found == {
        *(("torch", None, "files"), ("torch", None, "tar"), ("torch", url, "files")),
        *(("webdataset", None, "files"), ("webdataset", url, "files"), ("streaming", None, "files")),
    }


def test_auto_asks_no_store_for_the_shards_of_a_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoaderBackend, "is_installed", lambda _: True)
    monkeypatch.setattr(Format, "is_installed", lambda _: True)
    url = "s3://b/train"
    swept = suite(dataset={"root": "train"}, sweep={"loader": "auto", "storage": [None, url]})
    plan = make_plan(swept, cpus_allotted=2, accelerator=False)
    stores = {one["storage"] for one in plan.configurations if one["loader"] == "webdataset"}
    assert stores == {None}
    fixed = suite(dataset={"root": "train", "storage": url}, sweep={"loader": "auto"})
    loaders = {one["loader"] for one in make_plan(fixed, cpus_allotted=2, accelerator=False).configurations}
    assert loaders >= {"torch", "threads"}
    assert "webdataset" not in loaders


@pytest.mark.parametrize(
    "axes", [{"presize": [None, 256]}, {"format": ["files", "tar"]}, {"image_cache": [None, "shared_memory"]}]
)
def test_an_axis_of_which_a_store_allows_some_values_is_planned(axes: dict[str, Any]) -> None:
    given = suite(dataset={"root": "x", "storage": "s3://bucket/images"}, sweep={"num_workers": [0, 2], **axes})
    plan = make_plan(given, cpus_allotted=2, accelerator=False)
    assert {config["num_workers"] for config in plan.configurations} == {0, 2}
