"""When warm-up ends and when enough was seen."""

from itertools import accumulate, repeat

import pytest

from loaderbench.recorder import Rules
from loaderbench.recorder.measure import batches_wanted


def steady(batch_s: float, count: int) -> list[float]:
    return list(accumulate(repeat(batch_s, count - 1), initial=0.0))


def test_the_queue_is_turned_over_once_before_anything_counts() -> None:
    rules = Rules(seconds=10, prefetch_batches=8, cycle=4)
    assert not rules.warmed_up(steady(0.1, 8))
    assert rules.warmed_up(steady(0.1, 9))


def test_warmup_out_of_time_ends_with_the_prefetched_batches() -> None:
    rules = Rules(seconds=0.2, prefetch_batches=6, cycle=3)
    assert not rules.warmed_up(steady(0.1, 5))
    assert rules.warmed_up(steady(0.1, 6))


def test_warm_up_goes_on_while_windows_disagree() -> None:
    rules = Rules(seconds=100, prefetch_batches=1)
    slowing = [0.0, 1.0, 3.0, 7.0, 15.0]
    assert not rules.warmed_up(slowing)
    assert rules.warmed_up([*slowing, 23.0])


def test_warm_up_ends_after_the_seconds_of_a_window_at_the_latest() -> None:
    assert Rules(seconds=5, prefetch_batches=1).warmed_up([0.0, 1.0, 3.0, 7.0])


def test_windows_are_as_long_as_can_be_told_from_noise() -> None:
    rules = Rules(seconds=10, prefetch_batches=1)
    assert not rules.warmed_up(steady(0.001, 50))  # 49 ms in all hold no two windows of 50 ms
    assert rules.warmed_up(steady(0.001, 110))


def test_the_steady_state_lasts_its_seconds_and_twenty_batches() -> None:
    rules = Rules(seconds=1)
    assert not rules.closed(steady(0.1, 15), 1)
    assert rules.closed(steady(0.1, 22), 1)
    assert not rules.closed(steady(0.01, 50), 1)
    assert rules.closed(steady(0.01, 103), 1)


@pytest.mark.parametrize(
    ("batch_size", "wanted"), [(None, 20), (1, 20), (32, 20), (33, 20), (64, 10), (100, 7), (128, 5), (4096, 5)]
)
def test_fewer_large_batches_hold_as_many_samples(batch_size: int | None, wanted: int) -> None:
    assert batches_wanted(batch_size) == wanted


def test_the_steady_state_ends_with_the_batches_that_are_wanted() -> None:
    rules = Rules(seconds=1, wanted=5)
    assert not rules.closed(steady(0.3, 5), 1)
    assert rules.closed(steady(0.3, 6), 1)
    assert not rules.closed(steady(0.1, 10), 1)


def test_a_slow_loader_is_let_go_after_twice_the_seconds() -> None:
    rules = Rules(seconds=1)
    assert not rules.closed(steady(0.35, 6), 1)
    assert rules.closed(steady(0.35, 7), 1)
    assert not rules.closed(steady(0.9, 5), 1)
    assert rules.closed(steady(0.9, 6), 1)


def test_after_four_times_the_seconds_two_batches_are_enough_or_one_of_each_worker() -> None:
    rules, of_eight = Rules(seconds=1), Rules(seconds=1, cycle=8)
    assert not rules.closed(steady(5.0, 2), 1)
    assert rules.closed(steady(5.0, 3), 1)
    assert not of_eight.closed(steady(5.0, 8), 1)
    assert of_eight.closed(steady(5.0, 9), 1)


def test_the_steady_state_ends_with_a_whole_turn_of_the_workers() -> None:
    rules = Rules(seconds=1, cycle=8)
    ends = [count for count in range(20, 60) if rules.closed(steady(0.1, count + 1), 1)]
    assert ends == [24, 32, 40, 48, 56]
