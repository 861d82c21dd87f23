"""Waits are divided by where the awaited batch was: nothing is counted twice, nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from loaderbench.recorder.stalls import Spans, StallSums, Wait, divide_waits


def spans(*rows: tuple[int, int, float, float], workers: int = 2) -> Spans:
    """From (worker, its how-manieth batch, began, ended)."""
    batches = [(number * workers + worker, worker, began_s, ended_s) for worker, number, began_s, ended_s in rows]
    return Spans.of(workers, sorted(batches))


def test_a_wait_for_a_batch_that_is_being_made_is_the_making_s() -> None:
    sums = divide_waits([Wait(0, 1.0, 3.0)], spans((0, 0, 0.0, 3.0), (1, 0, 0.0, 4.0)))
    assert (sums.making_s, sums.order_s, sums.after_s, sums.not_begun_s) == (2.0, 0.0, 0.0, 0.0)


def test_what_passes_after_a_batch_was_made_is_its_way_to_the_main_process() -> None:
    sums = divide_waits([Wait(0, 1.0, 3.0)], spans((0, 0, 0.0, 1.5), (1, 0, 0.0, 4.0)))
    assert (sums.making_s, sums.after_s) == (0.5, 1.5)


def test_a_way_that_is_long_while_the_worker_makes_the_next_batch_delays_nothing() -> None:
    sums = divide_waits([Wait(0, 1.0, 3.0)], spans((0, 0, 0.0, 1.5), (0, 1, 1.5, 4.0), workers=1))
    assert (sums.making_s, sums.after_s) == (2.0, 0.0)


def test_a_worker_whose_stream_has_ended_is_not_idle() -> None:
    """After its first batch, one worker has no more. The other makes all batches, and each takes long to arrive."""
    ended, on = (1, 1, 0.0, 0.5), [(number, 0, float(number), number + 1.0) for number in (0, 2, 3, 4, 5)]
    found = Spans.of(2, sorted([ended, *on]))
    late = divide_waits([Wait(4, 4.2, 5.8)], found)
    assert (late.making_s, late.after_s, late.ended_s) == pytest.approx((1.6, 0.0, 1.6))
    early = divide_waits([Wait(3, 3.2, 4.8)], found)  # the worker could still have been asked for this one
    assert (early.making_s, early.after_s, early.ended_s) == pytest.approx((0.8, 0.8, 0.0))


def test_a_batch_that_nobody_had_begun_is_told_apart() -> None:
    sums = divide_waits([Wait(0, 1.0, 4.0)], spans((0, 0, 2.0, 3.0), (1, 0, 2.0, 9.0)))
    assert (sums.not_begun_s, sums.making_s, sums.after_s) == (1.0, 1.0, 1.0)


def test_a_later_batch_that_lies_ready_beside_an_idle_worker_is_the_order_s() -> None:
    sums = divide_waits([Wait(0, 1.0, 5.0)], spans((0, 0, 0.0, 5.0), (1, 0, 0.0, 2.0)))
    assert (sums.making_s, sums.order_s) == (1.0, 3.0)


def test_a_later_batch_that_lies_ready_is_nobody_s_fault_while_all_workers_are_busy() -> None:
    sums = divide_waits([Wait(0, 1.0, 5.0)], spans((0, 0, 0.0, 5.0), (1, 0, 0.0, 2.0), (1, 1, 2.0, 6.0)))
    assert (sums.making_s, sums.order_s) == (4.0, 0.0)


def test_each_worker_has_the_batches_that_it_made_in_turn_or_not() -> None:
    found = Spans.of(2, [(0, 0, 0.0, 1.0), (1, 1, 0.0, 1.1), (2, 0, 1.0, 2.0), (3, 0, 2.0, 2.1)])
    assert found.made == {0: (0.0, 1.0), 1: (0.0, 1.1), 2: (1.0, 2.0), 3: (2.0, 2.1)}
    assert found.by_worker == [[(0.0, 1.0), (1.0, 2.0), (2.0, 2.1)], [(0.0, 1.1)]]


def test_batches_that_came_before_they_were_made_are_not_what_they_are_taken_for() -> None:
    sums = divide_waits([Wait(number, 0.0, 1.0) for number in range(2)], spans((0, 0, 2.0, 3.0), (1, 0, 2.0, 3.0)))
    assert sums.amiss == 2
    assert not sums.usable
    assert not StallSums().usable


def test_a_later_batch_is_ready_once_it_is_made_and_not_while_it_is_being_made() -> None:
    sums = divide_waits([Wait(0, 1.0, 5.0)], spans((0, 0, 0.0, 5.0), (1, 0, 0.0, 2.0), workers=3))
    assert (sums.making_s, sums.order_s) == (1.0, 3.0)


def test_of_several_later_batches_the_first_that_is_ready_counts() -> None:
    rows = (0, 0, 0.0, 5.0), (1, 0, 0.0, 4.0), (2, 0, 0.0, 2.0)
    sums = divide_waits([Wait(0, 1.0, 5.0)], spans(*rows, workers=4))
    assert (sums.making_s, sums.order_s) == (1.0, 3.0)


def test_a_worker_s_earlier_batches_are_no_work_on_the_later_ones() -> None:
    made = [(1, number, float(number), number + 1.0) for number in range(4)]
    sums = divide_waits([Wait(0, 1.0, 8.0)], spans((0, 0, 0.0, 8.0), *made))
    assert (sums.making_s, sums.order_s) == (3.0, 4.0)


def test_a_worker_that_makes_the_same_batch_all_along_is_busy() -> None:
    sums = divide_waits(
        [Wait(0, 3.0, 5.0)], spans((0, 0, 0.0, 5.0), (1, 0, 0.0, 1.0), (1, 1, 1.0, 2.0), (1, 2, 2.0, 9.0))
    )
    assert (sums.making_s, sums.order_s) == (2.0, 0.0)


def test_a_worker_that_begins_late_is_idle_until_then_and_busy_with_each_batch() -> None:
    late = [(1, 0, 2.0, 3.0), (1, 1, 3.0, 4.0), (1, 2, 4.0, 4.5)]
    sums = divide_waits([Wait(0, 1.0, 5.0)], spans((0, 0, 0.0, 1.0), (0, 1, 1.0, 9.0), *late))
    assert sums.after_s == 1.5
    assert sums.making_s == 2.5


def test_batches_are_counted_and_a_wait_for_one_that_nobody_made_is_not() -> None:
    sums = divide_waits(
        [Wait(0, 0.0, 1.0), Wait(1, 0.0, 1.0), Wait(7, 0.0, 9.0)], spans((0, 0, 0.0, 1.0), (1, 0, 0.0, 1.0))
    )
    assert (sums.batches, sums.amiss) == (2, 0)
    assert sums.making_s == 2.0


@pytest.mark.parametrize(("late_s", "amiss"), [(0.0, 0), (0.9e-3, 0), (1.1e-3, 1)])
def test_a_millisecond_is_no_contradiction_between_two_clocks(late_s: float, amiss: int) -> None:
    assert divide_waits([Wait(0, 0.0, 1.0)], spans((0, 0, 0.0, 1.0 + late_s))).amiss == amiss


@pytest.mark.parametrize(("amiss", "usable"), [(0, True), (5, True), (6, False)])
def test_one_batch_in_twenty_may_be_amiss(amiss: int, usable: bool) -> None:
    assert StallSums(batches=100, amiss=amiss).usable == usable


def test_one_batch_that_fits_is_enough() -> None:
    assert StallSums(batches=1).usable


def test_epochs_are_added_up_part_by_part() -> None:
    sums = StallSums(1.0, 2.0, 3.0, 4.0, 5, 6)
    sums.add(StallSums(10.0, 20.0, 30.0, 40.0, 50, 60))
    assert sums == StallSums(11.0, 22.0, 33.0, 44.0, 55, 66)


moments = st.floats(0, 100, allow_nan=False)


@given(st.lists(st.tuples(moments, moments, moments, moments), min_size=1, max_size=12), st.integers(1, 4))
def test_the_parts_add_up_to_the_waits(rows: list[tuple[float, float, float, float]], workers: int) -> None:
    waits = [Wait(number, min(row[:2]), max(row[:2])) for number, row in enumerate(rows)]
    made = [(number, number % workers, min(row[2:]), max(row[2:])) for number, row in enumerate(rows)]
    sums = divide_waits(waits, Spans.of(workers, made))
    parts = (sums.making_s, sums.order_s, sums.after_s, sums.not_begun_s)
    assert sum(parts) == pytest.approx(sum(wait.got_s - wait.asked_s for wait in waits))
    assert all(part >= -1e-9 for part in parts)
