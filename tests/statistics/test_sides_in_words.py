"""What a comparison of two versions says: why it is undecided, which trials failed, and what hides a slower loader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from test_comparison import run
from test_sides import FOUR, TWO, asked, pairs, trial

from loaderbench.records import Failure, GateResult, SideBySide, TimeSlices, Trial
from loaderbench.statistics.gates import judge_sides, parse_gate
from loaderbench.statistics.sides import (
    STEP_HIDES,
    TARGET_HIDES,
    budget_used_up,
    compare_sides,
    comparison_of,
    is_decided,
    pairs_used_up,
    rates_of_pairs,
)

GATE = "samples_per_s:-10%"
HANGS = Failure("hang", "no progress", "")


def failing(trials: Sequence[Trial], rounds: Sequence[int], side: str = "after") -> list[Trial]:
    """The trials, of which those of a side hang in these rounds."""
    return [
        replace(one, status="failed", samples_per_s=None, data_wait_share=None, failure=HANGS)
        if one.side == side and one.round in rounds
        else one
        for one in trials
    ]


def judged(side_by_side: SideBySide, trials: Sequence[Trial]) -> GateResult:
    return judge_sides(side_by_side.gates[0], comparison_of(side_by_side, trials))


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ("decided", "measuring ended because the gates were decided"),
        (budget_used_up(180), "a longer --budget narrows it"),
        (pairs_used_up((5, 8)), "a longer --budget narrows it"),
        ("interrupted after 16 trials", "interrupted after 16 trials"),
    ],
)
def test_an_undecided_change_says_why_measuring_ended(ended: str, said: str) -> None:
    found = comparison_of(replace(asked("samples_per_s:-40%"), looks=(5, 8), ended=ended), pairs(1.0, noise=0.2))
    assert found.outcome == "inconclusive"
    assert found.reasons[0].endswith(f"; {said}")
    assert judge_sides(parse_gate("samples_per_s:-40%", ""), found).outcome == "passed"


def test_a_version_that_crashes_in_some_rounds_passes_no_gate() -> None:
    side_by_side, trials = asked(GATE, most=12), failing(pairs(1.0, count=12), (2, 3, 5, 8, 11))
    found = comparison_of(side_by_side, trials)
    words = "later: 5 of 12 trials failed (hang)"
    assert (found.outcome, found.reasons) == ("within noise", (words,))
    assert not is_decided(TWO, side_by_side, found)
    result = judge_sides(side_by_side.gates[0], found)
    assert result.outcome == "inconclusive"
    assert result.said.endswith(f"; {words}")
    assert judged(asked("samples_per_s<9", most=12), trials).outcome == "inconclusive"
    assert judged(asked("samples_per_s:+30%", most=12), trials).outcome == "inconclusive"


def test_a_gate_fails_where_the_later_version_crashes_significantly_more_often() -> None:
    trials = failing(pairs(1.0, count=12), range(6, 13))
    result = judged(asked(GATE, most=12), trials)
    assert result.outcome == "failed"
    assert result.said.endswith("later: 7 of 12 trials failed (hang)")
    assert is_decided(TWO, asked(GATE, most=12), comparison_of(asked(GATE, most=12), trials))
    assert judged(asked(GATE, most=12), failing(trials, range(6, 13), "before")).outcome == "passed"


@pytest.mark.parametrize("sides", [("before",), ("before", "after")])
def test_a_crash_that_is_not_of_the_later_version_alone_is_said_and_decides_nothing(sides: tuple[str, ...]) -> None:
    trials = pairs(1.0, count=12)
    for number, side in enumerate(sides, 3):
        trials = failing(trials, (number,), side)
    found = comparison_of(asked(GATE, most=12), trials)
    assert found.reasons[0].startswith("earlier: 1 of 12 trials failed (hang)")
    assert judge_sides(parse_gate(GATE, ""), found).outcome == "passed"


def test_of_several_configurations_the_one_with_failed_trials_is_named() -> None:
    both = asked(GATE, configs=(TWO, FOUR))
    trials = [*pairs(1.0), *failing(pairs(1.0, config=FOUR), (3,))]
    found = comparison_of(both, trials)
    assert found.reasons == ("later: 1 of 8 trials failed (hang) with num_workers=4",)
    assert judged(both, trials).said.endswith("later: 1 of 8 trials failed (hang) with num_workers=4")


@pytest.mark.parametrize(
    ("trials", "ended", "why"),
    [
        (pairs(1.0, count=2), budget_used_up(180), "set a longer --budget"),
        (pairs(1.0, count=2), "interrupted after 4 trials", "interrupted after 4 trials"),
        (failing(pairs(1.0, count=8), range(3, 9)), budget_used_up(180), "later: 6 of 8 trials failed (hang)"),
    ],
)
def test_too_few_pairs_have_their_cause_and_no_interval(trials: list[Trial], ended: str, why: str) -> None:
    found = comparison_of(replace(asked(GATE), ended=ended), trials)
    assert found.reasons == (f"fewer than 3 pairs; {why}",)
    said = judge_sides(parse_gate(GATE, ""), found).said
    assert f"(no interval: fewer than 3 pairs; {why})" in said
    assert said.count(why) == 1


def measured(gate: str, consumer: str, ratio: float, **fields: Any) -> Any:
    """A run of two versions with data wait, whose earlier version takes 1,000 samples/s."""
    trials = [
        trial(number, side, 1000.0 * factor * (1 + 0.001 * number), TWO, consumer=consumer, **fields)
        for number in range(1, 9)
        for side, factor in (("before", 1.0), ("after", ratio))
    ]
    return replace(
        run({}, trials=tuple(trials), suite={"consumer": {"demand": 1000.0}}, consumer=consumer),
        kind="ab",
        side_by_side=asked(gate),
    )


@pytest.mark.parametrize(
    ("consumer", "share", "ratio", "why"),
    [
        ("emulated", 0.01, 1.0, TARGET_HIDES),
        ("emulated", 0.3, 0.95, ""),
        ("model", 0.001, 1.0, STEP_HIDES),
        ("model", 0.1, 1.0, ""),
    ],
)
def test_rates_that_the_consumer_limits_hide_a_slower_loader(
    consumer: str, share: float, ratio: float, why: str
) -> None:
    comparison, gates = compare_sides(measured(GATE, consumer, ratio, data_wait_share=share))
    assert comparison is not None
    assert comparison.reasons == ((why,) if why else ())
    assert (gates[0].outcome, gates[0].said.endswith(f"; {why}")) == ("passed", bool(why))
    _, (wait,) = compare_sides(measured("data_wait_share:+3pp", consumer, ratio, data_wait_share=share))
    assert (wait.outcome, why in wait.said and bool(why)) == ("passed", False)


def test_pairs_are_those_that_the_comparison_counts() -> None:
    slices = TimeSlices(count=4, batches=40, samples=160, seconds=1.0)
    trials = pairs(1.0, count=4)
    trials[1] = replace(trials[1], time_slices=slices)
    assert [number for number, *_ in rates_of_pairs(TWO, trials)] == [2, 3, 4]
    assert rates_of_pairs(TWO, trials)[0][1:] == (trials[2].samples_per_s, trials[3].samples_per_s)
