"""The verdict of a training from those of its ranks: who holds back whom."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from loaderbench.diagnosis.ranks import loading_rates, of_job, slow_ranks, step_rates
from loaderbench.records import Rank, StageCost, Trial, Verdict, WorkerStates
from loaderbench.records.words import SENT_BY_RANK_0

READ = Verdict(
    bound="input",
    stage="read",
    limit="storage_latency",
    headline="storage latency; workers wait in read",
    evidence=("Read: 9 ms",),
    confidence="high",
)
KEEPS_UP = replace(READ, bound="compute", stage=None, limit="none", headline="the loader keeps up")


def rank(number: int, wait: float | None, host: str = "a", lost: float | None = None) -> Rank:
    verdict = READ if wait is not None and wait >= 0.05 else KEEPS_UP
    return Rank(
        rank=number,
        host=host,
        device=None,
        samples_per_s=100.0,
        data_wait_share=wait,
        rank_wait_share=lost,
        verdict=verdict,
    )


def trial(number: int, **readings: Any) -> Trial:
    """The trial of one rank."""
    return Trial(role="rank", id=f"rank{number}", config={}, round=0, status="completed", rank=number, **readings)


def job(*ranks: Rank) -> Verdict:
    slowest = max(ranks, key=lambda one: one.data_wait_share or 0.0)
    return of_job(slowest.verdict, ranks)


def test_ranks_whose_batches_rank_0_loads_wait_with_it() -> None:
    receiving = replace(rank(1, None), not_measured={"data_wait_share": SENT_BY_RANK_0})
    found = job(rank(0, 0.55), receiving)
    assert (found.rank, found.headline) == (None, READ.headline)
    assert found.evidence[-1] == "Ranks: rank 0 loads the batches of all 2 ranks; the others wait with it"


def test_one_slow_rank_is_named_with_what_the_others_lose() -> None:
    found = job(rank(0, 0.02, lost=0.5), rank(1, 0.55, lost=0.0), rank(2, 0.03, lost=0.48))
    assert (found.rank, found.bound, found.stage, found.limit) == (1, "input", "read", "storage_latency")
    assert found.headline == "rank 1 holds back the other 2 ranks: storage latency; workers wait in read"
    assert found.evidence[-1] == (
        "Ranks: rank 1 waits for data 55% of step time, the other 2 ranks 2%; "
        "the other 2 ranks wait for it 49% of step time"
    )


@pytest.mark.parametrize(("wait", "steps_per_s", "holds_back"), [
    (0.58, (20.0, 20.1, 19.9), True),
    (0.58, (20.0, 46.0, 47.0), False),
    (0.58, (20.0, 25.0, 25.0), True),  # as often as these met, or less than half as fast as alone
    (0.10, (20.0, 21.5, 21.6), True),
    (0.58, (20.0,), True),
])  # fmt: skip
def test_ranks_that_take_more_steps_than_a_slow_one_do_not_wait_for_it(
    wait: float, steps_per_s: tuple[float, ...], holds_back: bool
) -> None:
    ranks = [rank(0, wait), rank(1, 0.02), rank(2, 0.03)]
    found = of_job(
        READ, ranks, [trial(number, batches=60, steady_s=60 / each) for number, each in enumerate(steps_per_s)]
    )
    does = "holds back" if holds_back else "loads more slowly than"
    assert found.headline == f"rank 0 {does} the other 2 ranks: storage latency; workers wait in read"
    assert found.rank == 0
    assert found.evidence[-1].endswith("they do not wait for one another") is not holds_back


def test_steps_per_second_are_those_of_each_rank() -> None:
    own = trial(3, batches=60, steady_s=2.0)
    assert step_rates([own, replace(own, rank=4, batches=None)]) == {3: 30.0}


def test_of_two_ranks_the_other_one_has_its_number() -> None:
    found = job(rank(0, 0.4), rank(1, 0.02))
    assert found.headline == "rank 0 holds back rank 1: storage latency; workers wait in read"
    assert found.evidence[-1] == "Ranks: rank 0 waits for data 40% of step time, rank 1 2%"


def test_slow_ranks_of_one_host_are_named_with_it() -> None:
    ranks = [rank(number, 0.5 if number > 3 else 0.01, "b" if number > 3 else "a") for number in range(8)]
    assert job(*ranks).headline.startswith("4 ranks (4, 5, 6, 7) on b hold back the other 4 ranks: ")
    assert job(*ranks).rank == 4


def test_of_many_slow_ranks_the_first_are_named() -> None:
    ranks = [rank(number, 0.5 if number < 20 else 0.01) for number in range(64)]
    assert job(*ranks).headline.startswith("20 ranks (0, 1, 2, 3, ...) hold back the other 44 ranks: ")


@pytest.mark.parametrize("waits", [(0.5, 0.5), (0.5, 0.4, 0.45, 0.3), (0.5, 0.48, 0.02), (0.5,), (0.5, None)])
def test_ranks_that_are_alike_hold_nobody_back(waits: tuple[float | None, ...]) -> None:
    found = job(*(rank(number, wait) for number, wait in enumerate(waits)))
    assert (found.rank, found.headline) == (None, READ.headline)


def test_a_healthy_job_has_no_slow_rank() -> None:
    found = job(rank(0, 0.04), rank(1, 0.0), rank(2, 0.001))
    assert (found.rank, found.bound) == (None, "compute")
    assert found.evidence[-1] == "Ranks: 3 ranks wait for data 0% to 4% of step time"


def test_ranks_that_take_turns_at_being_late_hold_back_the_job_together() -> None:
    found = job(*(rank(number, 0.03, lost=0.18) for number in range(8)))
    assert (found.rank, found.bound, found.stage, found.limit) == (None, "input", None, "imbalance")
    assert found.headline == "each step waits for the slowest of 8 ranks; the slowest rank varies"
    assert found.evidence[-1].endswith("8 ranks wait for data 3% of step time; including waits for other ranks, 21%")


def test_a_run_without_ranks_is_left_alone() -> None:
    assert of_job(READ, ()) is READ


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_those_held_back_are_at_least_as_many_and_wait_less(waits: list[float]) -> None:
    ranks = [rank(number, wait) for number, wait in enumerate(waits)]
    slow = slow_ranks(ranks)
    others = [one for one in ranks if one not in slow]
    assert len(slow) <= len(others)
    if slow:
        assert min(one.data_wait_share or 0.0 for one in slow) > max(one.data_wait_share or 0.0 for one in others)


@pytest.mark.parametrize(("rate", "named"), [(105.0, False), (300.0, True), (None, True)])
def test_a_rank_is_named_only_if_the_others_load_faster_than_the_job(rate: float | None, named: bool) -> None:
    ranks = [rank(0, 0.5), rank(1, 0.02), rank(2, 0.03)]
    rates = {} if rate is None else {0: 100.0, 1: rate, 2: rate}
    trials = [trial(number, stages={"read": StageCost(0.0, 1 / each)}) for number, each in rates.items()]
    assert [one.rank for one in slow_ranks(ranks, rates)] == ([0] if named else [])
    assert of_job(READ, ranks, trials).rank == (0 if named else None)


def test_what_a_rank_could_load_is_of_all_its_workers() -> None:
    stages = {"read": StageCost(0.001, 0.003), "collate": StageCost(0.001, 0.001)}
    own = Trial(
        role="rank", id="rank3", config={"num_workers": 2}, round=0, status="completed", rank=3, stages=stages,
    )  # fmt: skip
    assert loading_rates([own]) == {3: 500.0}
    assert loading_rates([replace(own, stages={"read": StageCost(0.001, None)}), replace(own, stages=None)]) == {}


def test_workers_that_no_axis_names_are_those_that_were_seen() -> None:
    seen = WorkerStates(on_cpu_share=0.9, run_queue_share=0.0, blocked_share=0.1, count=4)
    own = Trial(
        role="rank", id="rank3", config={"ranks": 4}, round=0, status="completed", rank=3, workers=seen,
        stages={"read": StageCost(0.001, 0.004)},
    )  # fmt: skip
    assert loading_rates([own]) == {3: 1000.0}
    assert loading_rates([replace(own, workers=None)]) == {3: 250.0}
