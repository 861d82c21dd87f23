"""What one traced trial tells in a sentence."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from loaderbench.diagnosis.wording import describe_inside as evidence_inside, loaded_by, percent, throughput, waits
from loaderbench.records import Interval, StageCost, Trial, WorkerStates
from loaderbench.records.words import NOT_READ_TWICE

TRIAL = Trial(role="sweep", id="a", config={}, round=1, status="completed", stages={"sample": StageCost(0.01, 0.02)})


def describe_inside(trials: Sequence[Trial]) -> tuple[str, ...]:
    return tuple(map(str, evidence_inside(trials)))


def test_an_opaque_dataset_is_called_by_its_name() -> None:
    assert describe_inside([TRIAL]) == ("Wall time: other __getitem__ code 100% of loader time per sample (20 ms)",)


def test_without_a_dataset_there_is_no_code_of_one() -> None:
    (said,) = evidence_inside([TRIAL], is_loader=False)
    assert str(said) == "Wall time: the main process 100% of loader time per sample (20 ms)"


def test_without_workers_the_time_is_the_main_process_s() -> None:
    (said,) = describe_inside([replace(TRIAL, config={"num_workers": 0})])
    assert "of main-process time per sample" in said


STATES = WorkerStates(on_cpu_share=0.5, run_queue_share=0.1, blocked_share=0.4)


@pytest.mark.parametrize(
    ("fields", "who"),
    [
        ({"config": {"num_workers": 2}}, "workers"),
        ({"config": {"num_workers": 0}, "main_process": STATES}, "main_process"),
        ({"main_process": STATES}, "main_process"),  # `num_workers` is fixed, or left at torch's default
        ({"main_process": STATES, "workers": STATES}, "workers"),
        ({"main_process": STATES, "not_measured": {"workers": NOT_READ_TWICE}}, "workers"),
        ({"main_process": STATES, "role": "profile"}, "unknown"),  # a loader of one's own may load in threads
        ({}, "unknown"),
    ],
)
def test_who_loads_is_known_by_the_configuration_or_by_the_processes_at_work(fields: dict[str, Any], who: str) -> None:
    assert loaded_by(replace(TRIAL, **fields)) == who


@pytest.mark.parametrize("stages", [None, {}, {"decode": StageCost(0.1, None)}, {"decode": StageCost(0.0, 0.0)}])
def test_what_was_not_timed_is_not_told(stages: dict[str, StageCost] | None) -> None:
    assert describe_inside([replace(TRIAL, stages=stages)]) == ()


def test_a_trial_that_failed_tells_nothing() -> None:
    assert describe_inside([replace(TRIAL, status="failed")]) == ()


TIMED = {"read": StageCost(0.001, 0.002), "decode": StageCost(0.009, 0.006), "collate": StageCost(0.001, None)}


def test_the_stage_that_takes_longest_is_told_with_its_share() -> None:
    (said,) = describe_inside([replace(TRIAL, stages=TIMED)])
    assert said.startswith("Wall time: decode 75%")
    assert "(6 ms)" in said


def test_a_stage_is_the_workers_where_these_are_known() -> None:
    whose = "of worker time per sample"
    states = WorkerStates(on_cpu_share=0.75, run_queue_share=0.2, blocked_share=0.05)
    assert whose in describe_inside([replace(TRIAL, config={"num_workers": 2})])[0]
    assert whose in describe_inside([replace(TRIAL, workers=states)])[0]
    assert whose not in describe_inside([TRIAL])[0]


def test_what_workers_did_is_told_in_shares_that_add_up() -> None:
    states = WorkerStates(on_cpu_share=0.75, run_queue_share=0.2, blocked_share=0.05)
    said = "Workers: 75% on a CPU, 20% waiting for a CPU, 5% blocked"
    assert describe_inside([replace(TRIAL, stages=None, workers=states)]) == (said,)


def test_the_first_trial_that_was_completed_tells() -> None:
    failed, other = replace(TRIAL, status="failed"), replace(TRIAL, stages=TIMED)
    assert describe_inside([failed, TRIAL, other]) == describe_inside([TRIAL])


def test_shares_and_rates_have_their_intervals_where_there_are_any() -> None:
    assert percent(Interval(0.274, 0.241, 0.302)) == "27% (24\N{EN DASH}30%)"
    for unknown in (Interval(0.274, None, None), Interval(0.274, 0.2, None)):
        assert percent(unknown) == "27%"
    assert str(throughput(Interval(1234.4, 1200.0, 1300.0))) == "Throughput: 1,234 samples/s (1,200\N{EN DASH}1,300)"
    for unknown in (Interval(1234.4, None, None), Interval(1234.4, 1200.0, None)):
        assert str(throughput(unknown)) == "Throughput: 1,234 samples/s"
    assert "5% or more" in str(waits(Interval(0.274, None, None), 0.0))
