"""The verdict of a training in which ranks wait for the slow steps of others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from loaderbench.diagnosis.ranks import of_job
from loaderbench.diagnosis.slow_steps import BACKWARD, LEAST_WORK, REST, slow_in_steps, with_estimated_waits
from loaderbench.records import LoopLine, Rank, Verdict

KEEPS_UP = Verdict(
    bound="compute",
    stage=None,
    limit="none",
    headline="the loader keeps up",
    evidence=("Data wait: 1%",),
    confidence="high",
)
WAITS = replace(KEEPS_UP, bound="input", stage="read", limit="storage_latency", headline="storage latency")
WAIT = 0.02


def rank(number: int, *, forward: float, rest: float, wait: float = WAIT) -> Rank:
    """A rank whose backward pass is what remains of its step. It waits for data, or not."""
    return Rank(
        rank=number,
        host="a",
        device=None,
        samples_per_s=100.0,
        data_wait_share=wait,
        rank_wait_share=0.0,
        verdict=KEEPS_UP if wait < 0.05 else WAITS,
        step_parts={"forward": forward, BACKWARD: 1 - wait - forward - rest, REST: rest},
    )


def test_a_rank_with_a_slow_forward_pass_is_named_with_what_the_others_lose() -> None:
    found = of_job(KEEPS_UP, [rank(0, forward=0.1, rest=0.1), rank(1, forward=0.5, rest=0.1)])
    assert (found.rank, found.bound, found.limit) == (1, "compute", "none")
    assert found.headline == "the loader keeps up; rank 0 waits for the slow steps of rank 1"
    assert found.evidence[-1] == (
        "Ranks: rank 0 waits for rank 1 at least 40% of step time, in the backward pass; "
        "its forward takes 50% of step time, 10% in the others"
    )


def test_slow_code_outside_of_the_model_is_named_with_its_line() -> None:
    line = LoopLine(place="train.py:44", text="save(model)", share=0.9, looks=50)
    slow = replace(rank(0, forward=0.2, rest=0.6), step_line=line)
    found = of_job(KEEPS_UP, [slow, *(rank(number, forward=0.2, rest=0.05) for number in (1, 2, 3))])
    assert found.rank == 0
    assert found.headline.endswith("; the other 3 ranks wait for the slow steps of rank 0")
    assert "its rest of the step (train.py:44) takes 60% of step time, 5% in the others" in found.evidence[-1]


def on_gpu(number: int, *, forward: float, wait: float) -> Rank:
    """A rank of a GPU: the host does not know how long it waits for others."""
    found = replace(rank(number, forward=forward, rest=0.0, wait=wait), device=f"GPU {number}", rank_wait_share=None)
    return replace(found, not_measured={"rank_wait_share": "not timed", "step_line": "no line"})


def test_on_gpus_waits_for_other_ranks_follow_from_the_backward_passes() -> None:
    """The rank that waits for data has the shortest: nobody is there later, so it waits for nobody."""
    ranks = [on_gpu(0, forward=0.1, wait=0.01), on_gpu(1, forward=0.1, wait=0.6), on_gpu(2, forward=0.3, wait=0.01)]
    found = with_estimated_waits(ranks)
    assert [one.rank_wait_share for one in found] == pytest.approx([0.59, 0.0, 0.39])
    assert [one.is_wait_estimated for one in found] == [True] * 3
    assert [one.not_measured for one in found] == [{"step_line": "no line"}] * 3


def test_waits_are_not_estimated_without_gpus_or_where_some_are_known() -> None:
    """On CPUs, clocks either time these waits, or they find that ranks do not wait for one another."""
    fast, slow = on_gpu(0, forward=0.1, wait=0.01), on_gpu(1, forward=0.1, wait=0.6)
    for other in (
        replace(slow, device=None),
        replace(slow, rank_wait_share=0.0),
        replace(slow, step_parts={"forward": 0.4}),
    ):
        assert with_estimated_waits([fast, other]) == (fast, other)
    assert with_estimated_waits([fast]) == (fast,)
    assert with_estimated_waits([]) == ()


def test_ranks_with_equal_backward_passes_do_not_wait_there() -> None:
    """Rank 1 waits in its forward pass, for the buffers of rank 0: neither is named."""
    assert slow_in_steps([rank(0, forward=0.1, rest=0.6), rank(1, forward=0.6, rest=0.1)]) == ()


def test_a_small_difference_names_no_rank() -> None:
    ranks = [rank(0, forward=0.3, rest=0.1), rank(1, forward=0.3 + LEAST_WORK - 0.01, rest=0.1)]
    assert of_job(KEEPS_UP, ranks).rank is None


def test_most_ranks_hold_nobody_back() -> None:
    slow = [rank(number, forward=0.6, rest=0.1) for number in range(3)]
    assert slow_in_steps([*slow, rank(3, forward=0.1, rest=0.1)]) == ()


def test_ranks_with_undivided_steps_are_not_compared() -> None:
    undivided = replace(rank(0, forward=0.1, rest=0.1), step_parts={})
    divided = [rank(1, forward=0.6, rest=0.1), rank(2, forward=0.1, rest=0.1)]
    assert slow_in_steps([undivided, divided[0]]) == ()
    assert [one.rank for one in slow_in_steps([undivided, *divided])] == [1]


def test_waits_for_data_are_no_work() -> None:
    ranks = [rank(0, forward=0.1, rest=0.1), rank(1, forward=0.1, rest=0.1, wait=0.5)]
    assert slow_in_steps(ranks) == ()
    assert of_job(WAITS, ranks).headline == "rank 1 holds back rank 0: storage latency"


def test_a_data_wait_costs_nothing_in_a_rank_that_waits_for_another_ones_steps() -> None:
    found = of_job(WAITS, [rank(0, forward=0.1, rest=0.1, wait=0.2), rank(1, forward=0.8, rest=0.1)])
    assert (found.bound, found.rank) == ("compute", 1)


def test_of_slow_steps_and_a_shorter_data_wait_of_one_rank_the_steps_are_named() -> None:
    found = of_job(WAITS, [rank(0, forward=0.1, rest=0.1), rank(1, forward=0.6, rest=0.1, wait=0.06)])
    assert (found.bound, found.rank, found.stage, found.limit) == ("compute", 1, None, "none")
    assert found.headline == "data wait is 6% of step time; rank 0 waits for the slow steps of rank 1"


def test_of_slow_steps_and_a_longer_data_wait_of_one_rank_the_data_wait_is_named() -> None:
    found = of_job(WAITS, [rank(0, forward=0.1, rest=0.1), rank(1, forward=0.3, rest=0.1, wait=0.4)])
    assert (found.bound, found.limit) == ("input", "storage_latency")


def test_of_a_slow_loader_and_slow_steps_the_last_rank_counts() -> None:
    ranks = [
        rank(0, forward=0.1, rest=0.1, wait=0.7), rank(1, forward=0.6, rest=0.1), rank(2, forward=0.1, rest=0.1),
    ]  # fmt: skip
    found = of_job(WAITS, ranks)
    assert (found.bound, found.rank) == ("input", 0)


@given(st.lists(st.tuples(st.floats(0.0, 0.4), st.floats(0.0, 0.4)), min_size=1, max_size=12))
def test_those_who_wait_are_at_least_as_many_and_work_less(parts: list[tuple[float, float]]) -> None:
    ranks = [rank(number, forward=forward, rest=rest) for number, (forward, rest) in enumerate(parts)]
    slow = slow_in_steps(ranks)
    others = [one for one in ranks if one not in slow]
    assert len(slow) <= len(others)
    if slow:
        longest_of_slow = max(one.step_parts[BACKWARD] for one in slow)
        assert longest_of_slow < min(one.step_parts[BACKWARD] for one in others)
