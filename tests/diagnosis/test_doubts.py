"""What makes a cause doubtful: a second stage that costs nearly as much, and times that do not explain the rate."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_cause import BLOCKED, DECODING, NO_REASON, parts

from loaderbench.diagnosis.cause import Cause
from loaderbench.diagnosis.verdict import conflicting, near_tie, speaks_against


@pytest.mark.parametrize(("second_s", "tie", "word"), [(0.59, False, False), (0.6, False, True), (0.85, True, True)])
def test_a_second_stage_is_worth_a_word_from_three_fifths_on_and_a_tie_from_85_per_cent_on(
    second_s: float, tie: bool, word: bool
) -> None:
    facts = replace(DECODING, cpu_s={"decode": 2e-3, "transform": 2e-3 * second_s}, samples_per_s=300)
    cause = Cause("decode", "workers", NO_REASON)
    assert near_tie(facts, cause) == tie
    assert bool(speaks_against(facts, cause)) == word
    assert not near_tie(facts, Cause("decode", "order", NO_REASON))
    assert near_tie(facts, Cause("decode", "cpu", NO_REASON)) == tie


def test_a_stage_that_costs_nothing_is_no_tie_of_another_that_does_not() -> None:
    free = replace(DECODING, cpu_s={"decode": 0.0, "read": 0.0})
    assert not near_tie(free, Cause("decode", "cpu", NO_REASON))
    assert not near_tie(replace(DECODING, cpu_s={"decode": 1.0}), Cause("decode", "cpu", NO_REASON))


@pytest.mark.parametrize(("samples_per_s", "found"), [(499.0, False), (501.0, True)])
def test_times_do_not_explain_a_rate_that_is_a_third_higher(samples_per_s: float, found: bool) -> None:
    """One worker at 2.6 ms a sample lets 385 a second through, of which 1.3 times are 500."""
    assert conflicting(replace(DECODING, samples_per_s=samples_per_s, own_cpus=None)) == found


def test_evidence_against_names_another_cause_and_a_stage_that_costs_almost_as_much() -> None:
    cause = Cause("decode", "workers", NO_REASON)
    near = replace(DECODING, samples_per_s=270, cpu_s={"decode": 2e-3, "transform": 1.5e-3})
    assert speaks_against(near, cause) == ("transform costs 75% as much as decode",)
    assert speaks_against(DECODING, cause) == ()
    both = replace(BLOCKED, workers=2, samples_per_s=180, parts=parts(order_s=0.6, making_s=0.4))
    assert len(speaks_against(both, Cause("stragglers", "order", NO_REASON))) == 1


def test_a_rank_is_compared_with_its_own_times_where_the_others_are_faster() -> None:
    of_slowest = replace(DECODING, own_cpus=None, cpus=64, ranks=4, ranks_of_rate=4, slowest_rank_samples_per_s=100.0)
    assert not conflicting(replace(of_slowest, samples_per_s=4_000))
    assert conflicting(replace(of_slowest, samples_per_s=4_000, slowest_rank_samples_per_s=2_000.0))


def test_times_that_do_not_explain_the_rate_speak_against_any_cause() -> None:
    assert not conflicting(DECODING)
    faster = replace(DECODING, samples_per_s=4000, own_cpus=None)
    assert conflicting(faster)
    assert "measured 4,000 samples/s" in speaks_against(faster, Cause("decode", "workers", NO_REASON))[-1]
