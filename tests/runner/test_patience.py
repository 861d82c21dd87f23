"""A trial is ended ten times later than its neighbors, and the time in which the machine stood still is not counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from loaderbench.records import Config, PlannedTrial
from loaderbench.runner import TrialOrder, patience
from loaderbench.runner.patience import FEWEST_SIGNS, LEAST_PATIENCE_S, PAUSED_S, Neighbors, Patience
from loaderbench.runner.protocol import BUILDING
from loaderbench.suite import Suite


class Clock:
    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(patience, "time", found)
    return found


def order(config: Config | None = None, patience_s: float | None = None, timeout_s: float = 300.0) -> TrialOrder:
    suite = Suite.model_validate({"dataset": {"root": "x"}, "measure": {"timeout_s": timeout_s}})
    planned = PlannedTrial(id="t", role="sweep", config=config or {}, round=1)
    return TrialOrder(planned, suite, Path(), (), "none", Path("log"), patience_s=patience_s)


def test_before_a_neighbor_is_known_only_the_time_limit_counts() -> None:
    assert Neighbors().patience_s(order()) is None


def test_it_is_ten_times_the_longest_neighbor_and_never_a_moment() -> None:
    neighbors = Neighbors()
    neighbors.add(order(), 0.2)
    assert neighbors.patience_s(order()) == LEAST_PATIENCE_S
    neighbors.add(order(), 4.0)
    neighbors.add(order(), 3.0)
    assert neighbors.patience_s(order()) == 40.0


@pytest.mark.parametrize(
    ("own", "factor"),
    [
        ({"batch_size": 128, "num_workers": 0}, 4),
        ({"batch_size": 32, "num_workers": 1}, 1),
        ({"batch_size": 64, "num_workers": 3}, 6),
        ({"batch_size": 8, "num_workers": 0}, 1),
    ],
)
def test_more_samples_under_way_may_take_longer(own: Config, factor: int) -> None:
    neighbors = Neighbors()
    neighbors.add(order({"batch_size": 32, "num_workers": 0}), 4.0)
    assert neighbors.patience_s(order(own)) == 40.0 * factor


@pytest.mark.parametrize(
    "own",
    [
        {"num_workers": 2, "multiprocessing_context": "spawn"},
        {"num_workers": 2, "multiprocessing_context": "forkserver"},
        {"loader": "grain", "num_workers": 2, "threads": 2},
    ],
)
def test_workers_that_import_everything_anew_are_compared_with_their_own_kind_alone(own: Config) -> None:
    neighbors = Neighbors()
    for quick in ({"num_workers": 2, "multiprocessing_context": "fork"}, {"loader": "grain", "threads": 2}):
        neighbors.add(order(quick), 0.2)
    assert neighbors.patience_s(order(own)) is None
    neighbors.add(order(own), 8.0)
    assert neighbors.patience_s(order(own)) == 80.0
    assert neighbors.patience_s(order({"num_workers": 0, "multiprocessing_context": "spawn"})) == LEAST_PATIENCE_S


def test_progress_renews_patience_and_the_time_limit_stays(clock: Clock) -> None:
    waited = Patience(order(patience_s=10.0, timeout_s=25.0))
    for _ in range(24):
        clock.now_s += 1
        waited.renew()
        assert not waited.is_over()
    clock.now_s += 1
    assert waited.is_over()
    assert waited.failure("steady state", "", "").message == "no result after 25 s; phase: steady state"


def test_without_progress_it_is_over_long_before_the_time_limit(clock: Clock) -> None:
    waited = Patience(order(patience_s=10.0))
    for _ in range(10):
        assert not waited.is_over()
        clock.now_s += 1
    assert waited.is_over()
    found = waited.failure("steady state", "worker 1 is in read", "")
    assert found.kind == "hang"
    assert found.message.startswith(
        "no progress for 10 s, at least 10\N{MULTIPLICATION SIGN} the longest wait in other trials; phase: steady"
    )
    assert "timeout_s" not in found.hint


def test_a_pause_of_the_whole_machine_is_not_counted_but_noted(clock: Clock) -> None:
    waited = Patience(order(patience_s=10.0, timeout_s=20.0))
    clock.now_s += 1000
    assert not waited.is_over()
    assert waited.paused_s == 1000
    clock.now_s += PAUSED_S
    assert (waited.is_over(), waited.paused_s) == (False, 1000)


def test_a_dataset_that_takes_long_to_build_is_no_hang_and_no_measure_for_others(clock: Clock) -> None:
    """One value of an axis may cache a whole dataset that others read."""
    waited = Patience(order(patience_s=10.0, timeout_s=100.0))

    def wait(seconds: int) -> bool:
        for _ in range(seconds):
            clock.now_s += 1
            waited.is_over()
        return waited.is_over()

    waited.renew(BUILDING)
    assert not wait(60)
    waited.renew("first batch and warm-up")
    assert not wait(9)
    assert waited.longest_idle_s == 9
    assert wait(1)


def test_building_ends_with_the_time_limit(clock: Clock) -> None:
    waited = Patience(order(patience_s=10.0, timeout_s=20.0))
    waited.renew(BUILDING)
    for _ in range(20):
        assert not waited.is_over()
        clock.now_s += 1
    assert waited.is_over()
    assert waited.failure(BUILDING, "", "").message == "no result after 20 s; phase: building the dataset"


def test_the_longest_time_without_progress_is_kept(clock: Clock) -> None:
    waited = Patience(order())
    for seconds in (0.5, 1.5, 1.0):
        clock.now_s += seconds
        waited.renew()
    assert waited.longest_idle_s == 1.5


@pytest.mark.parametrize(("signs", "ends_after_s"), [(FEWEST_SIGNS - 1, 300.0), (FEWEST_SIGNS, 30.0)])
def test_a_first_trial_is_compared_with_itself_once_batches_came(clock: Clock, signs: int, ends_after_s: float) -> None:
    """It needed three seconds for one of them."""
    waited = Patience(order())
    for seconds in (3.0, *[0.2] * (signs - 1)):
        for _ in range(10):  # looks, which are never far apart
            clock.now_s += seconds / 10
            waited.is_over()
        waited.renew()
    began_s = clock.now_s
    while not waited.is_over():
        clock.now_s += 0.5
    assert clock.now_s - began_s == pytest.approx(ends_after_s, abs=5)
    if ends_after_s < 300:
        assert (
            "at least 10\N{MULTIPLICATION SIGN} the longest wait before; phase"
            in waited.failure("steady state", "", "").message
        )
