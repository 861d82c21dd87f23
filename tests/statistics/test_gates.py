"""A gate fails only where the whole interval lies beyond its limit, and noise is no failure."""

from __future__ import annotations

import pytest
from test_comparison import run, workers

from loaderbench.errors import UsageError
from loaderbench.records import Configuration, GateOutcome, Interval, RunRecord
from loaderbench.statistics.comparison import compare_runs
from loaderbench.statistics.gates import judge_gate, parse_gate


def outcome(text: str, before: list[float], after: list[float]) -> GateOutcome:
    then, now = run({2: before}), run({2: after})
    return judge_gate(parse_gate(text, "--fail-if"), now, compare_runs(then, now)).outcome


@pytest.mark.parametrize(
    ("text", "kind", "limit"),
    [
        ("samples_per_s:-5%", "change", -0.05),
        ("samples_per_s: +2.5 %", "change", 0.025),
        ("data_wait_share:+3pp", "change", 0.03),
        ("samples_per_s<800", "below", 800.0),
        ("data_wait_share>20%", "above", 0.2),
    ],
)
def test_an_expression_is_read(text: str, kind: str, limit: float) -> None:
    gate = parse_gate(text, "--fail-if")
    assert (gate.kind, gate.limit) == (kind, pytest.approx(limit))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("samples_per_second:-5%", "did you mean samples_per_s?"),
        ("speed:-5%", "there are samples_per_s and data_wait_share"),
        ("samples_per_s:-5pp", "is given in %"),
        ("data_wait_share:+3%", "is given in pp"),
        ("samples_per_s<80%", "a plain number"),
        ("data_wait_share>0.2", "a percentage"),
        ("samples_per_s", "is no gate"),
        ("samples_per_s:-nan%", "is no gate"),
        ("", "is no gate"),
    ],
)
def test_what_is_no_gate_says_what_it_could_have_been(text: str, said: str) -> None:
    with pytest.raises(UsageError, match="--fail-if") as raised:
        parse_gate(text, "--fail-if")
    assert said in str(raised.value)


STILL = [100.0, 101.0, 99.0, 100.5]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([100.0, 100.5, 99.5, 100.0], "passed"),
        ([80.0, 81.0, 79.0, 80.5], "failed"),
        ([60.0, 130.0, 90.0, 110.0], "inconclusive"),
        ([95.0], "inconclusive"),
        ([140.0, 141.0, 139.0, 140.0], "passed"),
    ],
)
def test_a_fall_fails_where_all_of_its_interval_lies_beyond(after: list[float], expected: str) -> None:
    assert outcome("samples_per_s:-5%", STILL, after) == expected


def test_a_run_that_cannot_be_compared_passes_no_gate() -> None:
    then, now = run({2: STILL}), run({4: STILL})
    result = judge_gate(parse_gate("samples_per_s:-5%", "--fail-if"), now, compare_runs(then, now))
    assert result.outcome == "inconclusive"
    assert "cannot be compared" in result.said


def level(rate: Interval | None, wait: Interval | None) -> RunRecord:
    found = Configuration(
        config=workers(2), samples_per_s=rate, data_wait_share=wait, trials=(), rank=1, tied_with_best=False
    )
    return run({2: STILL}, configurations=(found,))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("samples_per_s<700", "passed"),
        ("samples_per_s<900", "failed"),
        ("samples_per_s<800", "inconclusive"),
        ("data_wait_share>20%", "passed"),
        ("data_wait_share>5%", "failed"),
        ("data_wait_share>10%", "inconclusive"),
    ],
)
def test_a_level_needs_no_earlier_run(text: str, expected: str) -> None:
    measured = level(Interval(800.0, 780.0, 820.0), Interval(0.1, 0.08, 0.12))
    assert judge_gate(parse_gate(text, "--fail-if"), measured, None).outcome == expected


def test_where_nothing_was_measured_no_level_is_judged() -> None:
    result = judge_gate(parse_gate("samples_per_s<1", "--fail-if"), level(None, None), None)
    assert (result.outcome, result.said) == ("inconclusive", "no configuration was measured")
