"""Why a remedy is not recommended is true of the run, and what is faster is recommended by one card."""

from dataclasses import replace
from typing import Any

import pytest
from sweeps import AXES, TODAY, answers, findings, measured

from loaderbench.records import Config


@pytest.mark.parametrize(
    ("remedy", "workers"), [("main_process_loading", 0), ("more_workers", 2), ("fewer_workers", 2)]
)
def test_one_worker_count_is_not_checked_and_says_how_to_make_it_an_axis(remedy: str, workers: int) -> None:
    axes = {"num_workers": [workers], "batch_size": [8, 32]}
    found = answers(findings(axes, {"num_workers": workers, "batch_size": 8}, {}))[remedy]
    assert (found.status, found.basis) == ("not_checked", None)
    assert found.reason == "Not checked: one value swept; add -P num_workers=0,2,4"
    assert found.not_measured == {"basis": found.reason, "gain": found.reason}


def test_one_batch_size_is_not_checked_and_says_how_to_make_it_an_axis() -> None:
    axes = {"num_workers": [0, 2], "batch_size": [8]}
    found = answers(findings(axes, {"num_workers": 0, "batch_size": 8}, {}))["larger_batch"]
    assert found.status == "not_checked"
    assert found.reason == "Not checked: one value swept; add -P batch_size=8,16,32"


@pytest.mark.parametrize(
    ("remedy", "workers", "factors", "reason"),
    [
        ("main_process_loading", 0, {}, "num_workers=0 is already set"),
        ("more_workers", 2, {("num_workers", 2): 2.0}, "num_workers=2 is already set"),
        ("more_workers", 2, {("num_workers", 0): 2.0}, "Best config has fewer workers: 0"),
        ("fewer_workers", 2, {("num_workers", 8): 2.0}, "Best config has more workers: 8"),
        ("larger_batch", 0, {}, "batch_size=32 is already set"),
        ("larger_batch", 0, {("batch_size", 8): 2.0}, "Best config has a smaller batch: 8"),
    ],
)
def test_what_is_already_so_speaks_of_the_best_configuration_alone(
    remedy: str, workers: int, factors: dict[tuple[str, object], float], reason: str
) -> None:
    axes = {**AXES, "batch_size": [32, 8]}
    slower = {("batch_size", 8): 0.5, **factors}
    found = answers(findings(axes, {**TODAY, "batch_size": 32, "num_workers": workers}, slower))[remedy]
    assert (found.status, found.basis, found.reason) == ("already_ok", None, reason)


def test_a_smaller_batch_that_is_faster_is_recommended() -> None:
    found = answers(findings(AXES, {**TODAY, "batch_size": 32}, {("batch_size", 32): 0.5}))["best_combination"]
    assert (found.status, found.title, found.change) == ("open", "Set batch_size=8", {"batch_size": 8})
    assert "smaller batch" in (found.caveat or "")


@pytest.mark.parametrize(
    ("baseline", "factors", "remedy"),
    [
        (TODAY, {("num_workers", 8): 2.0}, "main_process_loading"),
        ({**TODAY, "num_workers": 8}, {("num_workers", 8): 0.5}, "fewer_workers"),
        (TODAY, {("batch_size", 32): 2.0}, "larger_batch"),
        (TODAY, {("pin_memory", True): 2.0}, "pin_memory"),
        ({**TODAY, "pin_memory": True}, {("pin_memory", True): 0.5}, "unpin_memory"),
    ],
)
def test_a_single_change_has_one_card_and_not_two(
    baseline: Config, factors: dict[tuple[str, object], float], remedy: str
) -> None:
    found = answers(findings(AXES, baseline, factors))
    assert [card.id for card in found.values() if card.status == "open"] == [remedy]


def test_another_axis_that_is_faster_is_recommended_by_its_name() -> None:
    axes = {"num_workers": [2], "decoder": ["pillow", "torchvision"]}
    given = findings(axes, {"num_workers": 2, "decoder": "pillow"}, {("decoder", "torchvision"): 2.0})
    assert answers(given)["best_combination"].title == "Set decoder=torchvision"


@pytest.mark.parametrize("workers", [0, 2])
def test_what_only_workers_take_comes_along_with_them_and_goes_with_them(workers: int) -> None:
    axes = {"num_workers": [0, 2], "prefetch_factor": [2, 4], "persistent_workers": [True]}
    none: Config = {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False}
    two: Config = {"num_workers": 2, "prefetch_factor": 4, "persistent_workers": True}
    slow, fast = (100.0, 101.0, 99.0), (200.0, 202.0, 198.0)
    before, after = (none, two) if workers == 0 else (two, none)
    other: tuple[Config, tuple[float, ...]] = ({**two, "prefetch_factor": 2}, slow)
    found = answers(measured([(before, slow), (after, fast), other], axes))
    card = found["main_process_loading" if workers == 0 else "fewer_workers"]
    assert (card.status, card.change) == ("open", after)
    assert "best_combination" not in found


def test_pinning_without_a_gpu_is_said_to_have_no_effect() -> None:
    reason = "Not checked: pin_memory has no effect without a GPU"
    bare: Config = {"num_workers": 0}
    for given in (
        findings(AXES, TODAY, {("pin_memory", True): 2.0}, accelerator=False),
        findings({"num_workers": [0, 2]}, bare, {}, accelerator=False),
        findings({"num_workers": [0, 2]}, bare, {}, accelerator=False, loader={"pin_memory": True}),
    ):
        found = answers(given)
        assert (found["pin_memory"].status, found["pin_memory"].reason) == ("not_checked", reason)
        assert "unpin_memory" not in found


def test_pinning_that_the_suite_fixes_is_said_to_be_set() -> None:
    axes, bare = {"num_workers": [0, 2]}, {"num_workers": 0}
    found = answers(findings(axes, dict(bare), {}, loader={"pin_memory": True}))["pin_memory"]
    assert (found.status, found.basis, found.reason) == ("already_ok", None, "pin_memory=True is already set")


def test_pinning_that_was_not_swept_says_how_to_make_it_an_axis() -> None:
    for axes in ({"num_workers": [0, 2]}, {"num_workers": [0, 2], "pin_memory": [False]}):
        found = answers(findings(axes, {axis: values[0] for axis, values in axes.items()}, {}))["pin_memory"]
        assert (found.status, "-P pin_memory=false,true" in (found.reason or "")) == ("not_checked", True)


@pytest.mark.parametrize("remedy", ["main_process_loading", "more_workers", "fewer_workers"])
def test_a_best_config_of_another_loader_says_nothing_of_a_count(remedy: str) -> None:
    now = 0 if remedy == "main_process_loading" else 2
    torch_: list[Config] = [{"loader": "torch", "num_workers": count, "threads": None} for count in (now, 4)]
    threads: Config = {"loader": "threads", "num_workers": None, "threads": 4}
    rates = [(torch_[0], [100.0] * 3), (torch_[1], [110.0] * 3), (threads, [300.0] * 3)]
    axes: dict[str, list[Any]] = {"loader": ["torch", "threads"], "num_workers": [now, 4, None], "threads": [None, 4]}
    found = answers(measured(rates, axes))[remedy]
    said = "Not checked: the best config's loader has no num_workers argument"
    assert (found.status, found.reason) == ("not_checked", said)


def test_a_tiny_gain_is_no_recommendation() -> None:
    rates = [({"batch_size": 8}, [1000.0, 1001.0, 1002.0]), ({"batch_size": 16}, [1004.0, 1005.1, 1006.0])]
    found = answers(measured(rates, {"batch_size": [8, 16]}))["larger_batch"]
    assert (found.status, found.basis) == ("already_ok", "measured")
    assert (found.reason or "").startswith("No gain above 10%: 1.00")


def test_another_folder_that_is_faster_has_a_caveat() -> None:
    axes = {"num_workers": [2], "root": ["/a", "/b"]}
    given = findings(axes, {"num_workers": 2, "root": "/a"}, {("root", "/b"): 2.0})
    found = answers(replace(given, options={"kind": "image_folder"}))["best_combination"]
    assert (found.title, found.caveat) == ("Set root=/b", "root changes which data is loaded")
    own = answers(replace(given, options=None))["best_combination"]
    assert own.caveat is None, "an argument of the user's function"
