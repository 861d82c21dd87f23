"""Time slices are long enough that work in flight while a trial is stopped gains it almost nothing."""

from __future__ import annotations

import pytest

from loaderbench.records import StageCost, WorkerStates
from loaderbench.runner.time_slices import GIVEN_SHARE, LONGEST_SLICE_S, SHORTEST_SLICE_S, slice_seconds

WORKING = WorkerStates(on_cpu_share=1.0, run_queue_share=0.0, blocked_share=0.0)


def costs(cpu_s: float, wall_s: float) -> dict[str, StageCost]:
    """A sample in two stages."""
    return {"decode": StageCost(cpu_s / 2, wall_s / 4), "sample": StageCost(cpu_s / 2, wall_s * 3 / 4)}


def test_work_alone_needs_the_shortest_slice() -> None:
    assert slice_seconds(costs(0.003, 0.003), WORKING) == SHORTEST_SLICE_S


def test_waiting_for_a_cpu_is_no_waiting_that_goes_on_while_stopped() -> None:
    crowded = WorkerStates(on_cpu_share=0.5, run_queue_share=0.5, blocked_share=0.0)
    assert slice_seconds(costs(0.01, 0.02), crowded) == SHORTEST_SLICE_S
    assert slice_seconds(costs(0.01, 0.02), WORKING) == pytest.approx(0.01 * 0.01 / 0.04 / GIVEN_SHARE)


@pytest.mark.parametrize("wait_s", [0.004, 0.008])
def test_half_a_wait_is_at_most_the_share_that_may_be_given(wait_s: float) -> None:
    seconds = slice_seconds(costs(0.0, wait_s), WORKING)
    assert seconds is not None
    assert SHORTEST_SLICE_S < seconds <= LONGEST_SLICE_S
    assert wait_s / 2 == pytest.approx(GIVEN_SHARE * seconds)


def test_no_slice_is_long_enough_for_a_slow_storage() -> None:
    assert slice_seconds(costs(0.0, 0.05), WORKING) is None


def test_where_nothing_is_known_no_slice_is_taken() -> None:
    idle = WorkerStates(on_cpu_share=0.0, run_queue_share=0.0, blocked_share=1.0)
    unknown = {"sample": StageCost(None, None)}
    assert slice_seconds(None, WORKING) is None
    assert slice_seconds(unknown, WORKING) is None
    assert slice_seconds(costs(0.001, 0.001), None) is None
    assert slice_seconds(costs(0.001, 0.001), idle) is None
