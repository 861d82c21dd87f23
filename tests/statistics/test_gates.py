"""A gate fails only where the whole interval lies beyond its limit, and noise is no failure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest
from test_comparison import run, workers

from loaderbench.errors import UsageError
from loaderbench.records import (
    Best,
    Comparison,
    Configuration,
    FailedTrials,
    FailureCount,
    GateOutcome,
    Interval,
    MetricChange,
    RunRecord,
)
from loaderbench.statistics.comparison import compare_runs
from loaderbench.statistics.gates import LEVEL_OF_LOOKS, judge_gate, may_be_decided, parse_gate
from loaderbench.statistics.intervals import LEVEL
from loaderbench.statistics.target_rate import CAPPED


def outcome(text: str, before: list[float], after: list[float]) -> GateOutcome:
    then, now = run({2: before}), run({2: after})
    return judge_gate(parse_gate(text, "--fail-if"), now, compare_runs(then, now)).outcome


@pytest.mark.parametrize(
    ("text", "kind", "limit"),
    [
        ("samples_per_s:-5%", "change", -0.05),
        ("samples_per_s: +2.5%", "change", 0.025),
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
        ("speed:-5%", "unknown metric speed; expected samples_per_s or data_wait_share"),
        ("samples_per_s:-5pp", "is in %; expected e.g. samples_per_s:-5%"),
        ("data_wait_share:+3%", "is in pp; expected e.g. data_wait_share:+3pp"),
        ("samples_per_s<80%", "a number without %; expected e.g. samples_per_s<800"),
        ("data_wait_share>0.2", "a percentage; expected e.g. data_wait_share>20%"),
        ("samples_per_s:-100%", "cannot change by so much; expected e.g. samples_per_s:-5%"),
        ("data_wait_share:+100pp", "cannot change by so much; expected e.g. data_wait_share:+3pp"),
        ("data_wait_share>100%", "at most 100%; expected e.g. data_wait_share>20%"),
        ("samples_per_s", "invalid; expected e.g. samples_per_s:-5%, data_wait_share:+3pp"),
        ("samples_per_s:-nan%", "invalid; expected"),
        (f"samples_per_s:+{'9' * 400}%", "number out of range; expected e.g."),
        (f"samples_per_s<{'9' * 400}", "number out of range; expected e.g."),
        ("", "invalid; expected"),
    ],
)
def test_an_invalid_gate_says_what_is_expected(text: str, said: str) -> None:
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


@pytest.mark.parametrize(("after", "expected"), [(80.0, "failed"), (140.0, "passed")])
def test_a_gate_of_minus_zero_forbids_every_fall(after: float, expected: str) -> None:
    assert outcome("samples_per_s:-0%", STILL, [after, after + 1, after - 1, after]) == expected


def test_a_run_that_cannot_be_compared_passes_no_gate() -> None:
    then, now = run({2: STILL}), run({4: STILL})
    result = judge_gate(parse_gate("samples_per_s:-5%", "--fail-if"), now, compare_runs(then, now))
    assert result.outcome == "inconclusive"
    assert "not comparable" in result.said


def test_a_gate_that_passes_at_the_target_says_what_that_hides() -> None:
    rates = [1000.0, 985.0, 1015.0, 1000.0]
    then, now = run({2: rates}), run({2: rates})
    gate, found = parse_gate("samples_per_s:-5%", "--fail-if"), compare_runs(then, now)
    result = judge_gate(gate, now, found)
    assert result.outcome == "passed"
    assert result.said.endswith(f"; {CAPPED}")
    slow = run({2: [rate / 2 for rate in rates]})
    judged = judge_gate(gate, slow, compare_runs(then, slow))
    assert judged.outcome == "failed"
    assert CAPPED not in judged.said
    wait = parse_gate("data_wait_share:+3pp", "--fail-if")
    assert judge_gate(wait, now, found).outcome == "passed"


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


@pytest.mark.parametrize(
    ("text", "interval", "expected"),
    [
        ("samples_per_s<800", Interval(810.0, 800.0, 820.0), "passed"),
        ("samples_per_s<800", Interval(790.0, 780.0, 800.0), "inconclusive"),
        ("samples_per_s>800", Interval(790.0, 780.0, 800.0), "passed"),
        ("samples_per_s>800", Interval(810.0, 800.0, 820.0), "inconclusive"),
        ("samples_per_s<800", Interval(900.0, None, None), "inconclusive"),
        ("samples_per_s<800", Interval(900.0, 890.0, None), "inconclusive"),
    ],
)
def test_an_interval_that_ends_at_the_limit_passes_and_one_that_begins_there_is_open(
    text: str, interval: Interval, expected: str
) -> None:
    assert judge_gate(parse_gate(text, "--fail-if"), level(interval, None), None).outcome == expected


def test_a_level_is_that_of_the_best_configuration_and_else_of_the_fastest() -> None:
    found = tuple(
        Configuration(
            config=workers(number),
            samples_per_s=rate and Interval(rate, rate, rate),
            data_wait_share=Interval(number / 10, number / 10, number / 10),
            trials=(),
            rank=rank,
            tied_with_best=False,
        )
        for number, rate, rank in ((0, None, None), (1, 200.0, 3), (2, 600.0, 2), (4, 700.0, 1), (8, None, 4))
    )
    best = Best(
        config=workers(2), samples_per_s=Interval(1, 1, 1), data_wait_share=None, ties=(), why_this_one="", gain=None
    )
    for named, rate, share, label in ((best, 600, 20, "num_workers=2"), (None, 700, 40, "num_workers=4")):
        measured = run({2: STILL}, configurations=found, best=named)
        said = judge_gate(parse_gate("samples_per_s<1", "--fail-if"), measured, None).said
        assert f"{rate} samples/s ({rate}\u2013{rate})" in said
        assert label in said
        said = judge_gate(parse_gate("data_wait_share>1%", "--fail-if"), measured, None).said
        assert f"data wait {share}% ({share}\u2013{share}%)" in said
        assert label in said


def test_a_level_says_its_interval_or_that_there_is_none() -> None:
    gate = parse_gate("samples_per_s<800", "--fail-if")
    assert "1,234 samples/s (1,200\u20131,300)" in judge_gate(gate, level(Interval(1234, 1200, 1300), None), None).said
    for unknown in (Interval(1234, None, None), Interval(1234, 1200, None)):
        assert "1,234 samples/s (no interval" in judge_gate(gate, level(unknown, None), None).said


def test_a_loader_without_axes_is_named_as_it_is() -> None:
    found = Configuration(
        config={}, samples_per_s=Interval(5, 4, 6), data_wait_share=None, trials=(), rank=1, tied_with_best=False
    )
    result = judge_gate(parse_gate("samples_per_s<1", "--fail-if"), run({}, configurations=(found,)), None)
    assert result.said.endswith("unmodified config")


def test_a_share_that_was_not_measured_is_not_judged_and_its_reason_is_said() -> None:
    measured = level(Interval(800.0, 780.0, 820.0), None)
    found = judge_gate(parse_gate("data_wait_share>1%", "--fail-if"), measured, None)
    assert (found.outcome, found.said) == ("inconclusive", "data wait of num_workers=2 was not measured")
    reasons = {"data_wait_share": "nothing consumes the batches"}
    known = replace(measured, configurations=(replace(measured.configurations[0], not_measured=reasons),))
    said = judge_gate(parse_gate("data_wait_share>1%", "--fail-if"), known, None).said
    assert said == "data wait of num_workers=2 was not measured: nothing consumes the batches"


def changed(metric: Literal["samples_per_s", "data_wait_share"], *values: float | None, reason: str = "") -> Comparison:
    """A comparison with this change in the decisive configuration; gates ignore the large change in another."""
    est, low, high = values
    change = None if est is None else Interval(est, low, high)
    own, other = (
        MetricChange(
            config=workers(number),
            metric=name,
            before=None,
            after=None,
            change=interval,
            outcome="inconclusive",
            not_measured={"change": reason} if reason else {},
        )
        for number, name, interval in ((2, metric, change), (4, metric, Interval(9.0, 9.0, 9.0)))
    )
    second = replace(own, metric="data_wait_share" if metric == "samples_per_s" else "samples_per_s", change=None)
    return Comparison(
        outcome="inconclusive", headline="", metrics=(other, second, own, second), reasons=(), config=workers(2)
    )


@pytest.mark.parametrize(
    ("text", "values", "expected", "said"),
    [
        ("samples_per_s:-5%", (0.9, 0.88, 0.92), "failed", "samples/s changed by \u221210% (\u221212 to \u22128%)"),
        ("samples_per_s:-5%", (0.97, 0.96, 0.98), "passed", "\u22123.0% (\u22124.0 to \u22122.0%)"),
        ("samples_per_s:-5%", (0.97, 0.9, 1.04), "inconclusive", "\u22123.0% (\u221210.0 to 4.0%)"),
        ("samples_per_s:+5%", (1.1, 1.06, 1.14), "failed", "+10% (6\u201314%)"),
        ("samples_per_s:+0%", (1.1, 1.06, 1.14), "failed", "+10%"),
        ("samples_per_s:-5%", (0.5, None, None), "inconclusive", "\u221250% (no interval"),
        ("data_wait_share:+3pp", (0.05, 0.04, 0.06), "failed", "+5.0 percentage points (4.0\u20136.0)"),
        ("data_wait_share:+3pp", (0.02, 0.01, 0.03), "passed", "+2.0 percentage points (1.0\u20133.0)"),
        ("data_wait_share:-3pp", (-0.05, -0.06, -0.04), "failed", "data wait changed by \u22125.0 percentage points"),
    ],
)
def test_a_change_is_judged_and_said_with_its_interval(
    text: str, values: tuple[float | None, ...], expected: str, said: str
) -> None:
    gate = parse_gate(text, "--fail-if")
    metric: Any = gate.metric
    result = judge_gate(gate, level(None, None), changed(metric, *values))
    assert (result.outcome, said in result.said) == (expected, True)


@pytest.mark.parametrize(
    ("text", "values", "said"),
    [
        ("samples_per_s:-20%", (0.78, 0.76, 0.797), "\u221222.0% (\u221224.0 to \u221220.3%)"),
        ("samples_per_s:-20%", (0.78, 0.75, 0.80), "\u221222% (\u221225 to \u221220%)"),
        ("data_wait_share:+3pp", (0.05, 0.0304, 0.07), "+5.00 percentage points (3.04\u20137.00)"),
    ],
)
def test_a_bound_close_to_the_limit_is_not_rounded_to_it(text: str, values: tuple[float, ...], said: str) -> None:
    gate = parse_gate(text, "--fail-if")
    metric: Any = gate.metric
    assert said in judge_gate(gate, level(None, None), changed(metric, *values)).said


def test_a_change_that_is_not_known_says_why() -> None:
    gate = parse_gate("samples_per_s:-5%", "--fail-if")
    assert "--baseline" in judge_gate(gate, level(None, None), None).said
    for reason, said in (("one process", "one process"), ("", "not measured in both runs")):
        result = judge_gate(gate, level(None, None), changed("samples_per_s", None, None, None, reason=reason))
        assert (result.outcome, result.said) == ("inconclusive", said)
    elsewhere = replace(changed("samples_per_s", 0.5, 0.5, 0.5), config=workers(16))
    assert judge_gate(gate, level(None, None), elsewhere).said == "not measured in both runs"


def test_a_change_without_an_interval_says_why_it_has_none() -> None:
    gate = parse_gate("samples_per_s:-5%", "--fail-if")
    few = changed("samples_per_s", 0.5, None, None, reason="fewer than 3 pairs; set a longer --budget")
    said = judge_gate(gate, level(None, None), few).said
    assert said == "samples/s changed by \u221250% (no interval: fewer than 3 pairs; set a longer --budget)"


def test_of_two_metrics_that_a_typo_resembles_only_the_nearest_is_offered() -> None:
    with pytest.raises(UsageError, match=r"did you mean data_wait_share\?"):
        parse_gate("data_wait_shares_per_s>3%", "--fail-if")


def test_where_nothing_was_measured_no_level_is_judged() -> None:
    result = judge_gate(parse_gate("samples_per_s<1", "--fail-if"), level(None, None), None)
    assert (result.outcome, result.said) == ("inconclusive", "no config was measured")


@pytest.mark.parametrize(
    ("est", "spread", "helps"), [(1.0, 0.01, True), (1.0, 0.08, False), (0.9, 0.04, True), (0.951, 0.03, False)]
)
def test_more_rounds_help_unless_the_reference_run_alone_is_too_noisy(est: float, spread: float, helps: bool) -> None:
    before = Interval(100.0, 100 * (1 - spread), 100 * (1 + spread))
    change = MetricChange(
        config={}, metric="samples_per_s", before=before, after=Interval(100.0, 99.0, 101.0),
        change=Interval(est, est - 0.1, est + 0.1), outcome="inconclusive",
    )  # fmt: skip
    found = Comparison(outcome="inconclusive", headline="", metrics=(change,), reasons=(), config={})
    assert may_be_decided(parse_gate("samples_per_s:-5%", ""), found) is helps


def test_more_rounds_do_not_help_where_only_the_later_run_has_failed_trials() -> None:
    rate = Interval(100.0, 99.0, 101.0)
    change = MetricChange(
        config={}, metric="samples_per_s", before=rate, after=rate,
        change=Interval(1.0, 0.9, 1.1), outcome="inconclusive",
    )  # fmt: skip
    found = Comparison(outcome="inconclusive", headline="", metrics=(change,), reasons=(), config={})
    none, one = FailureCount(failed=0, trials=4), FailureCount(failed=1, trials=4, kinds=("hang",))
    for before, helps in ((none, False), (one, True)):
        failed = FailedTrials(config={}, before=before, after=one, more_often=False)
        assert may_be_decided(parse_gate("samples_per_s:-5%", ""), replace(found, failed_trials=(failed,))) is helps


def test_every_interval_of_a_comparison_has_the_level_that_its_gates_are_judged_at() -> None:
    then, now = run({2: STILL}), run({2: STILL})
    usual, stricter = (
        (rate.before, rate.after, rate.change)
        for rate in (compare_runs(then, now, level).metrics[0] for level in (LEVEL, LEVEL_OF_LOOKS))
    )
    for narrow, wide in zip(usual, stricter, strict=True):
        assert narrow is not None
        assert wide is not None
        assert (wide.lo or 0) < (narrow.lo or 0) < (narrow.hi or 0) < (wide.hi or 0)


def test_nothing_can_be_decided_without_a_spread() -> None:
    one = Interval(100.0, None, None)
    change = MetricChange(
        config={}, metric="data_wait_share", before=one, after=one, change=one, outcome="inconclusive"
    )
    found = Comparison(outcome="inconclusive", headline="", metrics=(change,), reasons=(), config={})
    for gate in ("samples_per_s:-5%", "data_wait_share:+3pp"):
        assert not may_be_decided(parse_gate(gate, ""), found)


def test_a_second_round_can_decide_what_one_cannot() -> None:
    before, after = Interval(100.0, 99.0, 101.0), Interval(70.0, None, None)
    change = MetricChange(
        config={}, metric="samples_per_s", before=before, after=after,
        change=Interval(0.7, None, None), outcome="inconclusive",
    )  # fmt: skip
    found = Comparison(outcome="inconclusive", headline="", metrics=(change,), reasons=(), config={})
    assert may_be_decided(parse_gate("samples_per_s:-30%", ""), found)


def test_a_best_that_regressed_decides_where_nothing_else_is_as_fast_as_it_was() -> None:
    before = run({0: [279, 280, 281], 2: [463, 464, 465]})
    after = run({0: [279, 280, 281], 2: [115, 116, 117]})
    found = compare_runs(before, after)
    assert found.outcome == "regressed"
    assert "with num_workers=2" in found.headline
    assert judge_gate(parse_gate("samples_per_s:-5%", "--fail-if"), after, found).outcome == "failed"
