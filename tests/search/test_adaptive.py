"""An adaptive sweep: which configurations continue, which are dropped and why, and the same after a resume."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from loaderbench.plan import Plan, make_plan
from loaderbench.records import Failure, PlannedTrial, Trial
from loaderbench.search import Adaptive
from loaderbench.search.adaptive import FAILED, evenly
from loaderbench.suite import Suite

Rate = Callable[[PlannedTrial], "float | None"]


def plan(rounds: int = 3, seed: int = 7, **axes: Any) -> Plan:
    axes = axes or {"num_workers": [0, 1, 2, 4], "batch_size": [8, 16]}
    measure = {"rounds": rounds, "seed": seed, "strategy": "adaptive"}
    return make_plan(Suite.model_validate({"sweep": axes, "measure": measure}), cpus_allotted=4, accelerator=True)


def trial(one: PlannedTrial, rate: float | None) -> Trial:
    if rate is None:
        return Trial(**vars(one), status="failed", failure=Failure("error", "", ""))
    return Trial(**vars(one), status="completed", samples_per_s=rate)


def measured(laid_out: Plan, rate: Rate, room: float = math.inf, known: Sequence[Trial] = ()) -> list[Trial]:
    """All trials of a sweep; those that are `known` by an earlier call are not measured again."""
    search, done, before = Adaptive(laid_out), list[Trial](), {one.id: one for one in known}
    while planned := search.next_round([*({**before, **{t.id: t for t in done}}).values()], room - len(done)):
        done += [before.get(one.id) or trial(one, rate(one)) for one in planned]
    return done


def by_workers(one: PlannedTrial) -> float:
    """Twice the workers, twice the rate; batches matter little, and rounds differ by a lot."""
    steady = 100.0 * (1 + float(one.config["num_workers"] or 0)) * (1.01 if one.config["batch_size"] == 16 else 1.0)
    return steady * (0.5 + 0.3 * one.round)


def rounds_of(done: Sequence[Trial]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(one.config.values()) for one in done if one.role == "sweep")


def test_what_is_far_slower_gets_one_round_and_the_baseline_and_its_twin_get_all_that_are_needed() -> None:
    done = measured(plan(), by_workers)
    found = rounds_of(done)
    assert (found[0, 8], found[0, 16], found[4, 8], found[4, 16]) == (3, 1, 3, 3)
    assert found[1, 8] < 3
    assert [one.round for one in done if one.role == "twin"] == [1, 2, 3]


def test_the_reason_names_the_fastest_and_the_ratio_to_it() -> None:
    laid_out = plan()
    dropped = {tuple(one.config.values()): one for one in Adaptive(laid_out).dropped(measured(laid_out, by_workers))}
    assert (0, 8) not in dropped, "the baseline is never dropped"
    found = dropped[0, 16]
    assert (found.rounds, found.than) == (1, {"num_workers": 4, "batch_size": 16})
    assert found.ratio is not None
    assert found.ratio.est == pytest.approx(0.2)
    assert found.ratio.hi is not None
    assert found.ratio.hi < 1
    assert found.why.startswith("0.20")
    assert found.why.endswith("the rate of num_workers=4 batch_size=16")


def test_rounds_beyond_those_that_a_winner_needs_are_measured_until_the_best_is_known() -> None:
    alone = measured(plan(rounds=9), lambda one: 1000.0 if one.config["num_workers"] == 4 else 100.0)
    assert max(one.round for one in alone) == 3, "equal rates are tied after three rounds"
    noise = random.Random(1)
    undecided = measured(plan(rounds=9), lambda _: 100.0 * math.exp(noise.gauss(0.0, 0.1)))
    assert max(one.round for one in undecided) > 4
    assert [one.round for one in undecided if one.role == "twin"] == [1, 2, 3]


def test_what_fails_twice_is_not_tried_again_and_says_so() -> None:
    laid_out = plan()
    done = measured(laid_out, lambda one: None if one.config["num_workers"] == 4 else 100.0)
    assert rounds_of(done)[4, 8] == 2
    assert {one.why for one in Adaptive(laid_out).dropped(done)} == {FAILED}


def test_with_little_time_a_part_gets_a_look_and_the_fastest_continue() -> None:
    laid_out = plan(num_workers=[1, 2, 3, 4], batch_size=[4, 8, 16, 32], prefetch_factor=[2, 3, 4], x=[0, 1, 2, 3])
    count = len(laid_out.configurations)
    done = measured(laid_out, lambda one: 100.0 + sum(float(value or 0) for value in one.config.values()), room=100)
    first = [one for one in done if one.round == 1 and one.role == "sweep"]
    assert len(done) <= 100
    assert 40 <= len(first) <= 50 < count
    for axis, values in laid_out.axes.items():
        seen = Counter(one.config[axis] for one in first)
        assert max(seen.values()) - min(seen.get(value, 0) for value in values) <= 2
    assert {3} <= {one.round for one in done}
    why = Counter(one.why for one in Adaptive(laid_out).dropped(done, "no time") if not one.rounds)
    assert why == {"no time": count - len(first)}
    best = max(first, key=lambda one: one.samples_per_s or 0)
    assert rounds_of(done)[tuple(best.config.values())] == 3


def test_without_room_for_a_trial_nothing_is_proposed() -> None:
    assert measured(plan(), by_workers, room=0.5) == []


def test_each_beginning_of_the_order_has_all_values_about_as_often() -> None:
    laid_out = plan(num_workers=[1, 2, 3, 4, 5], batch_size=[4, 8, 16, 32, 64], x=[0, 1, 2, 3, 4])
    order = evenly(laid_out.configurations, 3, seed=1)
    assert sorted(order) == [*range(125)]
    assert order[0] == 3
    assert order == evenly(laid_out.configurations, 3, seed=1) != evenly(laid_out.configurations, 3, seed=2)
    for beginning in (5, 10, 25, 50):
        for axis, values in laid_out.axes.items():
            seen = Counter(laid_out.configurations[number][axis] for number in order[:beginning])
            assert all(abs(seen[value] - beginning / 5) <= 1 for value in values)


def test_each_number_of_ranks_has_a_race_of_its_own() -> None:
    laid_out = plan(ranks=[4, 1], num_workers=[0, 1, 2])

    def rate(one: PlannedTrial) -> float:
        ranks, workers = int(one.config["ranks"]), int(one.config["num_workers"])  # type: ignore[arg-type]
        return {4: 300.0, 1: 100.0}[ranks] * {0: 0.1, 1: 1.0, 2: 0.3}[workers]

    done = measured(laid_out, rate)
    found = rounds_of(done)
    assert found[4, 1] == found[1, 1] == 3
    dropped = {tuple(one.config.values()): one for one in Adaptive(laid_out).dropped(done)}
    assert dropped.keys() == {(4, 2), (1, 0), (1, 2)}  # and not the baseline (4, 0)
    assert dropped[1, 2].than == {"ranks": 1, "num_workers": 1}
    assert dropped[4, 2].than == {"ranks": 4, "num_workers": 1}


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), kept=st.floats(0.0, 1.0), rounds=st.integers(1, 6))
def test_a_resumed_sweep_measures_what_an_uninterrupted_one_does(seed: int, kept: float, rounds: int) -> None:
    laid_out = plan(rounds, seed)

    def rate(one: PlannedTrial) -> float:
        noise = random.Random(f"{seed} {one.id}")
        return 100.0 * (1 + float(one.config["num_workers"] or 0)) ** 0.3 * math.exp(noise.gauss(0.0, 0.1))

    whole = measured(laid_out, rate)
    resumed = measured(laid_out, rate, known=whole[: round(kept * len(whole))])
    assert [one.id for one in resumed] == [one.id for one in whole]
    assert Adaptive(laid_out).dropped(resumed) == Adaptive(laid_out).dropped(whole)


def test_time_that_is_short_on_the_second_call_adds_nothing_to_a_round_that_is_over() -> None:
    laid_out = plan(num_workers=[1, 2, 3, 4], batch_size=[4, 8, 16, 32])
    whole = measured(laid_out, lambda _: 100.0, room=20)
    again = measured(laid_out, lambda _: 100.0, room=1000, known=[one for one in whole if one.round <= 2])
    assert {one.id for one in again if one.round == 1} == {one.id for one in whole if one.round == 1}
    assert {one.id for one in again if one.round == 2} >= {one.id for one in whole if one.round == 2}


def test_rounds_that_a_gate_asked_for_drop_nothing() -> None:
    laid_out = plan(3, num_workers=[0, 1, 2])
    whole = measured(laid_out, lambda _: 100.0)
    more = replace(whole[0], id="r4-c00", round=4)
    assert Adaptive(laid_out).dropped([*whole, more]) == Adaptive(laid_out).dropped(whole)
