"""A planned trial becomes an order: which files, how long, and which consumer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import Notes, planned

from loaderbench.datasets import Inputs, pixels, presized
from loaderbench.datasets.image_folder import MOST_COPIES
from loaderbench.records import IDENTICAL, DatasetSummary, PixelChange
from loaderbench.runner import TrialOrder
from loaderbench.session.inputs import RunInputs, choices_of_data
from loaderbench.session.measuring import TrialMeasurer, is_alone, may_use_device
from loaderbench.suite import load_suite

FILES = tuple((f"{number}.jpg", number % 3) for number in range(5_000))


class FakeRunner:
    """Keeps the orders that it gets."""

    def __init__(self) -> None:
        self.orders: list[TrialOrder] = []

    def run(self, order: TrialOrder) -> str:
        self.orders.append(order)
        return "ran"

    def begin(self, order: TrialOrder) -> str:
        self.orders.append(order)
        return "begun"

    def outcome(self, begun: Any, slices: Any) -> Any:
        return begun, slices


class FakeStore:
    def log(self, name: str) -> Path:
        return Path(f"{name}.log")


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many images were copied, to which size."""
    found: list[tuple[int, int]] = []

    def copies(samples: Any, side: int, **_: Any) -> Any:
        found.append((len(samples), side))
        return tuple((f"copy {path}", label) for path, label in samples)

    monkeypatch.setattr(presized, "presized_copies", copies)
    return found


def measure(
    tmp_path: Path,
    text: str = "dataset: {root: photos}\nmeasure: {seconds: 4.0, seed: 5}\n",
    files: Any = FILES,
    consumer: str = "model",
    **more: Any,
) -> Any:
    (tmp_path / "s.yaml").write_text(text)
    runner: Any = FakeRunner()
    rest: dict[str, Any] = {"store": FakeStore(), "listener": Notes(), **more}
    loaded = load_suite(tmp_path / "s.yaml")
    inputs = {dataset.choice_of_data: Inputs(files, DatasetSummary("")) for dataset in choices_of_data(loaded.suite)}
    made = TrialMeasurer(
        None,
        runner,
        loaded,
        RunInputs(inputs),
        consumer=consumer,
        **rest,  # type: ignore[arg-type]
    )
    return made, runner.orders


def test_a_trial_that_decodes_on_the_gpu_uses_it_whatever_consumes(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("consumer: {kind: emulated}\n")
    suite = load_suite(tmp_path / "s.yaml").suite
    for decoder, uses in (("pillow", False), ("device", True)):
        assert may_use_device(planned("v01", {"decoder": decoder}), suite, "emulated") is uses


def test_a_trial_of_the_sweep_is_measured_as_the_suite_says(tmp_path: Path) -> None:
    made, orders = measure(tmp_path)
    one = planned("r1-c00", {"num_workers": 2})
    assert made(one) == "ran"
    (order,) = orders
    assert (order.planned, order.samples, order.consumer, order.log) == (one, FILES, "model", Path("r1-c00.log"))
    assert (order.suite.measure.seconds, order.in_time_slices) == (4.0, False)


def test_a_remedy_is_tried_for_less_than_a_second(tmp_path: Path) -> None:
    made, orders = measure(tmp_path)
    made(planned("v01", role="remedy"))
    assert (orders[0].suite.measure.seconds, made.sliced_seconds) == (0.6, 0.6)
    short, orders = measure(tmp_path, "measure: {seconds: 0.5}\n")
    short(planned("v01", role="remedy"))
    assert (orders[0].suite.measure.seconds, short.sliced_seconds) == (0.5, 0.5)


def test_before_its_time_slices_a_trial_has_a_short_steady_state(tmp_path: Path) -> None:
    made, orders = measure(tmp_path)
    assert made.begin(planned("v01", role="remedy")) == "begun"
    assert (orders[0].suite.measure.seconds, orders[0].in_time_slices) == (0.2, True)
    assert made.outcome("begun", None) == ("begun", None)


@pytest.mark.parametrize("begun", [False, True])
def test_rates_are_compared_of_fixes_and_of_versions_in_time_slices_or_not(tmp_path: Path, begun: bool) -> None:
    one, trials = measure(tmp_path)
    versions, pairs = measure(tmp_path, compares_rates=True)
    for role in ("sweep", "final", "remedy"):
        (one.begin if begun else one)(planned("t", role=role))
    (versions.begin if begun else versions)(planned("p1", role="ab", side="after"))
    assert [order.compares_rates for order in (*trials, *pairs)] == [False, False, True, True]


@pytest.mark.parametrize(
    ("name", "alone"), [("loader_warm", True), ("loader_cold", True), ("replay_host", False), ("replay_device", False)]
)
def test_the_loader_alone_reads_a_part_of_the_files_and_nothing_eats_them(
    tmp_path: Path, name: str, alone: bool
) -> None:
    made, orders = measure(tmp_path)
    made.files_alone = 100
    for number in (1, 1, 2):
        made(planned("i", number=number, role="isolation", isolation=name))
    first, again, second = orders
    assert first.suite.measure.seconds == 2.0
    assert (len(first.samples), first.consumer) == ((100, "none") if alone else (5_000, "model"))
    assert first.samples == again.samples
    numbers = [int(path.partition(".")[0]) for path, _ in first.samples]
    assert numbers == sorted(numbers)
    assert (first.samples != second.samples) == alone


@pytest.mark.parametrize(("own", "of_a_remedy"), [("model", "model"), ("emulated", "none"), ("target", "target")])
@pytest.mark.parametrize("begun", [False, True])
def test_a_remedy_is_consumed_as_the_sweep_is_but_for_a_demand_that_would_cap_its_gain(
    tmp_path: Path, own: str, of_a_remedy: str, begun: bool
) -> None:
    made, orders = measure(tmp_path, consumer=own)
    (made.begin if begun else made)(planned("v01", role="remedy"))
    made(planned("r1-c00"))
    assert [order.consumer for order in orders] == [of_a_remedy, own]


@pytest.mark.parametrize("own", ["model", "emulated", "target"])
def test_nothing_consumes_the_loader_alone_and_a_replay_has_the_run_s_consumer(tmp_path: Path, own: str) -> None:
    made, orders = measure(tmp_path, consumer=own)
    for name in ("loader_warm", "loader_cold", "replay_host", "replay_device"):
        made(planned("i", role="isolation", isolation=name))
    assert [order.consumer for order in orders] == ["none", "none", own, own]


@pytest.mark.parametrize("files", [None, 5_000, 9_000])
def test_files_that_are_few_enough_are_all_read(tmp_path: Path, files: int | None) -> None:
    made, orders = measure(tmp_path)
    made.files_alone = files
    made(planned("i", role="isolation", isolation="loader_warm"))
    assert orders[0].samples == FILES


def test_smaller_images_are_copies_of_some_that_are_made_once(tmp_path: Path, copied: list[tuple[int, int]]) -> None:
    made, orders = measure(tmp_path)
    for side in (256, 256, 128):
        made(planned("v", {"presize": side}, role="remedy"))
    assert copied == [(1_667, 256), (1_667, 128)]
    assert MOST_COPIES == 2_000
    assert orders[0].samples[1][0] == "copy 3.jpg"
    few, _ = measure(tmp_path, files=FILES[:10])
    few(planned("v", {"presize": 64}, role="remedy"))
    assert copied[-1] == (10, 64)


@pytest.mark.parametrize(
    ("text", "config", "copies"),
    [
        ("dataset: {root: photos, presize: 256}\n", {}, True),
        ("dataset: {root: photos, presize: 256}\n", {"presize": None}, False),
        ("dataset: {root: photos}\n", {}, False),
        ('dataset: {kind: target, target: "a:b"}\n', {"presize": 256}, False),
    ],
)
def test_copies_are_made_where_the_configuration_or_else_the_suite_asks(
    tmp_path: Path, copied: list[tuple[int, int]], text: str, config: dict[str, Any], copies: bool
) -> None:
    made, _ = measure(tmp_path, text)
    made(planned("v", config))
    assert bool(copied) == copies


def test_pixels_of_a_loader_that_decodes_by_itself_are_not_called_identical(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pixels, "pixel_changes", lambda _, pairs, _ask: [IDENTICAL] * len(pairs))
    made, _ = measure(tmp_path, "dataset: {root: photos}\n")
    made._server = SimpleNamespace(ask=None)
    dali, threads = {"loader": "dali", "threads": 2}, {"loader": "threads", "threads": 2}
    found = made.pixel_changes([({}, dali), (dali, {"num_workers": 2}), (dali, dali), ({}, threads)])
    unknown = PixelChange(None, "not compared: DALI decodes by itself; see Same batches")
    assert found == [unknown, unknown, IDENTICAL, IDENTICAL]


def test_pixels_are_compared_of_both_configurations_with_the_loader_s_fixed_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def compare(_: object, pairs: Any, ask: object) -> list[PixelChange]:
        asked.extend(pairs)
        return [PixelChange(30.0)] * len(pairs)

    monkeypatch.setattr(pixels, "pixel_changes", compare)
    made, _ = measure(tmp_path, "dataset: {root: photos}\nloader: {batch_size: 4}\n")
    made._server = SimpleNamespace(ask=None)
    assert made.pixel_changes([({"decoder": "pillow"}, {"decoder": "torchvision"})]) == [PixelChange(30.0)]
    ((one, other),) = asked
    assert one.arguments == {"batch_size": 4, "decoder": "pillow"}
    assert other.arguments == {"batch_size": 4, "decoder": "torchvision"}
    assert (one.samples, one.folder) == (FILES, tmp_path)


@pytest.mark.parametrize(
    ("cache", "config", "alone"), [("warm", {}, False), ("cold", {}, True), ("warm", {"ranks": 2}, True)]
)
def test_trials_that_would_warm_files_for_each_other_take_no_turns(
    cache: str, config: dict[str, int], alone: bool
) -> None:
    suite = SimpleNamespace(measure=SimpleNamespace(cache=cache))
    made: Any = SimpleNamespace(loaded=SimpleNamespace(suite=suite), accelerator=False)
    assert is_alone(planned("v1", {**config}), made) is alone
