"""What a tried remedy gave is decided by pairs: how many, how wide, and how much."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from loaderbench.records import Config, Failure, Interval, Judgement, Trial
from loaderbench.statistics.judging import is_lost, judge, wants_more

OLD: Config = {"num_workers": 2}
NEW: Config = {"num_workers": 3}
HALF_95, HALF_99 = 1.1779, 1.9533
"""Half the width of the interval of the logarithms of five pairs that lie evenly, in units of `spread`."""


def done(config: Config, rates: list[float]) -> list[Trial]:
    return [
        Trial(
            role="remedy", id=f"{number}{config}", config=config, round=number, status="completed", samples_per_s=rate
        )
        for number, rate in enumerate(rates, 1)
    ]


def failed(config: Config, number: int) -> Trial:
    return Trial(role="remedy", id="f", config=config, round=number, status="failed", failure=Failure("oom", "", ""))


def pairs(gain: float, spread: float, count: int = 5) -> list[Trial]:
    logs = [-1.2, -0.6, 0.0, 0.6, 1.2] if count == 5 else [(-1.0) ** number for number in range(count)]
    return [*done(OLD, [100.0] * count), *done(NEW, [100.0 * gain * math.exp(spread * log) for log in logs])]


def answer(gain: float, spread: float, count: int = 5) -> str:
    return judge(NEW, OLD, pairs(gain, spread, count)).answer


def test_three_pairs_decide_where_a_wide_interval_excludes_one_and_two_never_do() -> None:
    """A fix of 4.4 (3.6 to 5.3) in four pairs, when the time was up, was said to be undecided."""
    assert (answer(4.4, 0.1, count=3), answer(1.3, 0.1, count=3)) == ("gain", "undecided")
    assert (answer(0.2, 0.1, count=3), answer(1.3, 0.1)) == ("loss", "gain")
    assert answer(4.4, 0.0, count=2) == "undecided"
    assert judge(NEW, OLD, pairs(1.3, 0.0, count=2)).pairs == 2


def test_only_rounds_that_hold_both_are_pairs() -> None:
    alone = done(NEW, [1.0] * 9)[5:]
    found = judge(NEW, OLD, [*pairs(1.3, 0.0), *alone])
    assert (found.answer, found.pairs) == ("gain", 5)
    assert found.ratio is not None
    assert found.ratio.est == pytest.approx(1.3)


def test_a_gain_lies_clear_of_one_with_ninety_nine_per_cent() -> None:
    edge = math.log(1.08) / HALF_99
    assert answer(1.08, 0.97 * edge) == "gain"
    assert answer(1.08, 1.03 * edge) == "undecided"
    assert answer(1 / 1.08, 0.97 * edge) == "loss"
    assert answer(1 / 1.08, 1.03 * edge) == "no gain"


def test_a_gain_is_worth_it_from_two_per_cent_on() -> None:
    assert answer(1.021, 0.0) == "gain"
    assert answer(1.019, 0.0) == "no gain"
    assert answer(0.999, 0.0) == "loss"


def test_what_is_surely_below_a_tenth_is_no_gain_and_else_undecided() -> None:
    edge = math.log(1.10 / 1.01) / HALF_95
    assert answer(1.01, 0.98 * edge) == "no gain"
    assert answer(1.01, 1.02 * edge) == "undecided"


def test_what_is_printed_is_the_interval_of_ninety_five_per_cent() -> None:
    ratio = judge(NEW, OLD, pairs(1.3, 0.02)).ratio
    assert ratio is not None
    assert ratio.hi == pytest.approx(1.3 * math.exp(0.02 * HALF_95), rel=1e-3)


def test_a_wide_interval_asks_for_more_pairs_and_a_narrow_one_does_not() -> None:
    edge = math.log(1.08) / 2 / HALF_95
    assert not wants_more(judge(NEW, OLD, pairs(1.3, 0.98 * edge)))
    assert wants_more(judge(NEW, OLD, pairs(1.3, 1.02 * edge)))


@pytest.mark.parametrize("gain", [2.0, 6.0])
def test_the_interval_of_a_large_gain_may_be_a_fifth_as_wide_as_the_gain(gain: float) -> None:
    edge = math.log(gain) / 5 / 2 / HALF_95
    assert not wants_more(judge(NEW, OLD, pairs(gain, 0.98 * edge)))
    assert wants_more(judge(NEW, OLD, pairs(gain, 1.02 * edge)))


def test_the_interval_of_a_large_loss_is_as_wide_as_that_of_a_small_gain() -> None:
    edge = math.log(1.08) / 2 / HALF_95
    assert wants_more(judge(NEW, OLD, pairs(0.4, 1.02 * edge)))


def test_what_has_no_interval_asks_for_more() -> None:
    for ratio in (None, Interval(1.1, None, None), Interval(1.1, 1.1, None)):
        assert wants_more(Judgement("undecided", ratio, 1))


@pytest.mark.parametrize(
    ("low", "est", "more"),
    [(1.0, 1.03, False), (1.001, 1.02, True), (1.001, 1.019, False), (0.999, 1.03, False)],
)
def test_an_almost_sure_gain_lies_above_one_and_is_worth_it(low: float, est: float, more: bool) -> None:
    assert wants_more(Judgement("no gain", Interval(est, low, 1.04), 5)) == more
    assert wants_more(Judgement("undecided", Interval(est, low, 1.04), 5)) == more
    assert not wants_more(Judgement("gain", Interval(est, low, 1.04), 5))


NO_PAIR = {"ratio": "no round measured both configurations"}


def test_what_never_ran_failed_and_what_was_not_tried_is_undecided() -> None:
    assert judge(NEW, OLD, [*done(OLD, [100.0]), failed(NEW, 1)]) == Judgement("failed", None, 0, NO_PAIR)
    assert judge(NEW, OLD, done(OLD, [100.0])) == Judgement("undecided", None, 0, NO_PAIR)
    ran_elsewhere = [*done(OLD, [100.0]), failed(NEW, 1), *done(NEW, [100.0, 100.0])[1:]]
    assert judge(NEW, OLD, ran_elsewhere) == Judgement("undecided", None, 0, NO_PAIR)
    of_another = [*done(OLD, [100.0]), failed(OLD, 2)]
    assert judge(NEW, OLD, of_another).answer == "undecided"


def test_three_pairs_are_enough_to_give_up_what_is_slower() -> None:
    slower = [*done(OLD, [100.0] * 3), *done(NEW, [50.0, 51.0, 50.5])]
    assert is_lost(NEW, OLD, slower)
    assert not is_lost(NEW, OLD, [trial for trial in slower if trial.round < 3])
    assert not is_lost(NEW, OLD, [*done(OLD, [50.0, 51.0, 50.5]), *done(NEW, [100.0] * 3)])
    assert not is_lost(NEW, OLD, [*done(OLD, [100.0] * 3), *done(NEW, [50.0, 101.0, 150.0])])


def test_what_does_not_run_is_given_up_at_once_and_what_was_not_tried_is_not() -> None:
    assert is_lost(NEW, OLD, [*done(OLD, [100.0]), failed(NEW, 1)])
    assert not is_lost(NEW, OLD, done(OLD, [100.0]))


rates = st.lists(st.tuples(st.floats(1.0, 1e4), st.floats(1.0, 1e4)), min_size=5, max_size=12)


@given(rates)
def test_a_gain_of_one_over_the_other_is_a_loss_of_the_other_over_the_one(rates: list[tuple[float, float]]) -> None:
    trials = [*done(OLD, [before for before, _ in rates]), *done(NEW, [after for _, after in rates])]
    there, back = judge(NEW, OLD, trials), judge(OLD, NEW, trials)
    assert there.ratio is not None
    assert back.ratio is not None
    assert there.ratio.est * back.ratio.est == pytest.approx(1.0)
    if there.answer == "gain":
        assert back.answer == "loss"
