"""A sweep measures every configuration in every round, each round in an order of its own."""

from __future__ import annotations

import pytest

from loaderbench.plan import Plan, make_plan
from loaderbench.records import Failure, PlannedTrial, Trial
from loaderbench.search import Grid
from loaderbench.suite import Suite


def plan(rounds: int = 3, seed: int = 7) -> Plan:
    suite = Suite.model_validate(
        {"sweep": {"num_workers": [0, 1, 2], "batch_size": [8, 16]}, "measure": {"rounds": rounds, "seed": seed}}
    )
    return make_plan(suite, cpus_allotted=2, accelerator=False)


def all_rounds(plan: Plan) -> list[list[PlannedTrial]]:
    grid, found = Grid(plan), list[list[PlannedTrial]]()
    while planned := grid.next_round():
        found.append(list(planned))
    return found


@pytest.mark.parametrize(("rounds", "twins"), [(1, 0), (2, 0), (3, 1), (5, 1)])
def test_each_round_holds_each_configuration_once_and_the_baseline_twice_where_rounds_suffice(
    rounds: int, twins: int
) -> None:
    laid_out = plan(rounds)
    found = all_rounds(laid_out)
    assert len(found) == rounds
    for number, planned in enumerate(found, 1):
        assert {trial.round for trial in planned} == {number}
        assert sum(trial.role == "twin" for trial in planned) == twins
        assert sorted(str(trial.config) for trial in planned if trial.role == "sweep") == sorted(
            map(str, laid_out.configurations)
        )


def test_rounds_are_shuffled_each_anew_and_the_same_for_the_same_seed() -> None:
    orders = [[trial.id[3:] for trial in planned] for planned in all_rounds(plan(5))]
    assert len({tuple(order) for order in orders}) == 5
    assert any(order != sorted(order) for order in orders)
    assert all_rounds(plan(5)) == all_rounds(plan(5))
    assert all_rounds(plan(5)) != all_rounds(plan(5, seed=8))


def test_what_would_fail_like_another_is_left_out_with_the_reason() -> None:
    failed = Trial(
        role="sweep",
        id="t",
        config={"num_workers": 1, "batch_size": 8},
        round=1,
        status="failed",
        failure=Failure("hang", "", ""),
    )
    again, other = (
        PlannedTrial(id="n", role="sweep", config={"num_workers": 1, "batch_size": size}, round=2) for size in (8, 16)
    )
    grid = Grid(plan())
    assert "failed in round" in str(grid.why_not(again, [failed]))
    assert grid.why_not(other, [failed]) is None


def hung(round_: int, seconds: float | None, size: int = 8) -> Trial:
    return Trial(
        role="sweep", id=f"r{round_}", config={"batch_size": size}, round=round_, status="timed_out",
        duration_s=seconds, failure=Failure("hang", "", ""),
    )  # fmt: skip


def test_what_hung_once_and_was_ended_soon_is_measured_once_more() -> None:
    """Storage may have stalled for all; what hung for the whole time limit would cost as much again."""
    again = PlannedTrial(id="n", role="sweep", config={"batch_size": 8}, round=2)
    grid = Grid(plan())
    assert grid.why_not(again, [hung(1, 12.0), hung(1, 12.0, size=16)]) is None
    assert "failed in round 1 (hang)" in str(grid.why_not(again, [hung(1, 12.0), hung(2, 12.0)]))
    for took_s in (300.0, None):
        assert "failed in round 1" in str(grid.why_not(again, [hung(1, took_s)]))
