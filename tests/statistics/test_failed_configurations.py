"""A configuration that failed on one side: which one is compared, and when that fails a gate."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_comparison import run, trials, workers

from loaderbench.records import Best, Configuration, Failure, Interval, RunRecord, Status, Trial
from loaderbench.statistics.comparison import AFTER_FAILED, compare_runs
from loaderbench.statistics.gates import judge_gate, parse_gate

STILL = [100.0, 101.0, 99.0, 100.5]
GATE = parse_gate("samples_per_s:-5%", "--fail-if")


def failed(number: int, kind: str = "exception", status: Status = "failed") -> Trial:
    failure = Failure(kind, "it broke", "fix it")
    return Trial(role="sweep", id=f"f{number}", config=workers(number), round=1, status=status, failure=failure)


def best(number: int) -> Best:
    rate, config = Interval(100, 99, 101), workers(number)
    return Best(config=config, samples_per_s=rate, data_wait_share=None, ties=(), why_this_one="", gain=None)


def with_failure(rates: dict[int, list[float]], broken: Trial, named: int | None = None) -> RunRecord:
    measured = (trial for number, found in rates.items() for trial in trials(workers(number), found))
    planned: dict[int, list[float]] = {**rates, int(broken.config["num_workers"] or 0): []}
    return run(planned, trials=(*measured, broken), best=None if named is None else best(named))


@pytest.mark.parametrize("named", [None, 4])
def test_what_only_the_later_run_measured_leaves_the_outcome_to_what_both_did(named: int | None) -> None:
    before = with_failure({0: STILL}, failed(4))
    after = run({0: STILL, 4: [rate * 4 for rate in STILL]}, best=None if named is None else best(named))
    found = compare_runs(before, after)
    assert (found.config, found.outcome) == (workers(0), "within noise")
    assert judge_gate(GATE, after, found).outcome == "passed"


def test_where_no_configuration_was_measured_on_both_sides_the_reason_is_said() -> None:
    found = compare_runs(with_failure({}, failed(0)), run({0: STILL}))
    assert (found.outcome, found.reasons) == ("inconclusive", ("not measured before",))


@pytest.mark.parametrize("named", [None, 4])
@pytest.mark.parametrize("status", ["failed", "timed_out"])
def test_a_gate_fails_if_the_best_of_the_reference_run_now_only_fails(named: int | None, status: Status) -> None:
    before = run({0: STILL, 4: [rate * 4 for rate in STILL]}, best=None if named is None else best(named))
    after = with_failure({0: STILL}, failed(4, status=status), named=0)
    found = compare_runs(before, after)
    assert (found.config, found.outcome, found.reasons) == (workers(4), "inconclusive", (AFTER_FAILED,))
    assert "num_workers=4" in found.headline
    for text in ("samples_per_s:-5%", "data_wait_share:+3pp"):
        result = judge_gate(parse_gate(text, "--fail-if"), after, found)
        assert (result.outcome, result.said) == ("failed", f"{AFTER_FAILED} with num_workers=4")
    assert judge_gate(parse_gate("samples_per_s<50", "--fail-if"), after, found).said == "no config was measured"


def test_a_slower_configuration_that_fails_later_decides_no_gate() -> None:
    before = run({0: STILL, 4: [rate / 4 for rate in STILL]})
    after = with_failure({0: STILL}, failed(4))
    found = compare_runs(before, after)
    assert (found.config, judge_gate(GATE, after, found).outcome) == (workers(0), "passed")
    assert found.metrics[2].not_measured == {"after": AFTER_FAILED, "change": AFTER_FAILED}


def test_what_was_not_tried_did_not_fail() -> None:
    before = run({0: STILL, 4: [rate * 4 for rate in STILL]})
    after = with_failure({0: STILL}, failed(4, "pruned", "unavailable"))
    found = compare_runs(before, after)
    assert (found.config, judge_gate(GATE, after, found).outcome) == (workers(0), "passed")


def test_a_failed_trial_next_to_completed_ones_of_the_later_run_alone_passes_no_gate() -> None:
    before, after = run({0: STILL}), with_failure({0: STILL}, failed(0))
    found = compare_runs(before, after)
    assert (found.outcome, found.reasons) == ("within noise", ("later: 1 of 5 trials failed (exception)",))
    judged = judge_gate(GATE, after, found)
    assert judged.outcome == "inconclusive"
    assert judged.said.endswith("; later: 1 of 5 trials failed (exception)")


@pytest.mark.parametrize(("text", "outcome"), [("samples_per_s<50", "inconclusive"), ("samples_per_s<1000", "failed")])
def test_nor_does_it_pass_a_gate_on_a_level(text: str, outcome: str) -> None:
    rate = Interval(100, 99, 101)
    own = Configuration(
        config=workers(0), samples_per_s=rate, data_wait_share=None, trials=(), rank=1, tied_with_best=False
    )
    runs = run({0: STILL}), with_failure({0: STILL}, failed(0))
    before, after = (replace(found, configurations=(own,)) for found in runs)
    gate = parse_gate(text, "--fail-if")
    assert judge_gate(gate, before, compare_runs(before, before)).outcome == ("passed" if "<50" in text else "failed")
    assert judge_gate(gate, after, compare_runs(before, after)).outcome == outcome


def test_a_failed_trial_of_each_run_is_said_and_decides_no_gate() -> None:
    both = with_failure({0: STILL}, failed(0, "worker_killed"))
    found = compare_runs(both, both)
    words = "1 of 5 trials failed (worker killed)"
    assert found.reasons == (f"earlier: {words}, later: {words}",)
    assert judge_gate(GATE, both, found).outcome == "passed"


def test_a_gate_fails_where_trials_fail_significantly_more_often() -> None:
    before, steady = run({0: STILL * 3}), trials(workers(0), STILL * 3)
    broken = tuple(replace(failed(0, "hang"), id=f"f{number}", round=number) for number in range(7))
    for count, outcome in ((4, "inconclusive"), (5, "failed")):
        after = run({0: []}, trials=(*steady[: 12 - count], *broken[:count]))
        assert judge_gate(GATE, after, compare_runs(before, after)).outcome == outcome


def test_a_trial_that_was_not_tried_is_no_failed_one() -> None:
    before, after = run({0: STILL}), with_failure({0: STILL}, failed(0, "pruned", "unavailable"))
    found = compare_runs(before, after)
    assert (found.reasons, found.failed_trials, judge_gate(GATE, after, found).outcome) == ((), (), "passed")
