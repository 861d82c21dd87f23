"""What every tracker gets of a run: what was measured, by name, and nothing for what was not."""

from __future__ import annotations

from dataclasses import replace

import run_factory as runs

from loaderbench.exporters.files import trials_of
from loaderbench.exporters.table import (
    facts,
    gain_over_baseline,
    in_a_path,
    numbers_of,
    of_one_type,
    rows,
    run_name,
    summary,
)
from loaderbench.records import Interval
from loaderbench.records.metrics import METRICS
from loaderbench.result import Run


def test_an_interval_adds_its_bounds_and_what_was_not_measured_is_left_out() -> None:
    found = runs.typical().configurations[0]
    numbers = numbers_of(replace(found, samples_per_s=Interval(500.0, 480.0, 520.0), pss_bytes=None))
    assert (numbers["samples_per_s"], numbers["samples_per_s_lo"], numbers["samples_per_s_hi"]) == (500.0, 480.0, 520.0)
    assert "pss_bytes" not in numbers
    one_process = numbers_of(replace(found, samples_per_s=Interval(500.0, None, None)))
    assert not {"samples_per_s_lo", "samples_per_s_hi"} & set(one_process)


def test_a_value_that_is_no_number_is_left_out_and_a_measured_zero_is_not() -> None:
    found = replace(runs.typical().configurations[0], cpu_percent_of_allotted=float("nan"), shm_peak_bytes=0)
    numbers = numbers_of(found)
    assert "cpu_percent_of_allotted" not in numbers
    assert numbers["shm_peak_bytes"] == 0


def test_an_axis_of_numbers_and_words_is_text_and_one_of_numbers_is_not() -> None:
    assert of_one_type([64, "large", None]) == ["64", "large", None]
    assert of_one_type([True, 2]) == ["true", "2"]
    assert of_one_type([1, 2.5, None]) == [1, 2.5, None]


def test_the_gain_over_the_baseline_has_its_bounds_and_is_left_out_without_a_winner() -> None:
    run = runs.typical()
    assert run.best is not None
    won = replace(run, best=replace(run.best, gain=Interval(2.0, 1.9, 2.1)))
    assert gain_over_baseline(won) == {
        "gain_over_baseline": 2.0, "gain_over_baseline_lo": 1.9, "gain_over_baseline_hi": 2.1,
    }  # fmt: skip
    assert gain_over_baseline(replace(run, best=None)) == {}


def test_without_a_consumer_there_is_no_data_wait() -> None:
    for consumer, there in (("emulated", True), ("none", False)):
        run = replace(runs.typical(), consumer=consumer)
        [found, *_] = rows(run)
        assert ("data_wait_share" in found.numbers) is there
        assert ("data_wait_share" in found.rounds[0].numbers) is there
        assert ("data_wait_share" in trials_of(Run(run))) is there
        assert "samples_per_s" in trials_of(Run(run))


def test_every_name_is_of_the_table_of_metrics() -> None:
    known = {f"{metric.id}{end}" for metric in METRICS for end in ("", "_lo", "_hi")}
    found = [row.numbers for row in rows(runs.gpu_run())] + [
        one.numbers for row in rows(runs.gpu_run()) for one in row.rounds
    ]
    assert {name for numbers in found for name in numbers} <= known


def test_each_configuration_has_its_rounds_and_one_is_the_best() -> None:
    found = rows(runs.typical())
    assert len({row.name for row in found}) == len(found)
    assert [row.config for row in found if row.is_best] == [runs.typical().best.config]
    assert {tuple(one.number for one in row.rounds) for row in found} == {(1, 2, 3)}


def test_a_configuration_that_failed_is_there_without_numbers() -> None:
    failed = [row for row in rows(runs.partly_failed()) if not row.rounds]
    assert failed
    assert all("samples_per_s" not in row.numbers for row in failed)


def test_names_that_differ_only_in_what_a_path_cannot_hold_stay_apart() -> None:
    run = runs.typical()
    first, second, *_ = run.configurations
    pair = (replace(first, config={"target": "a/b"}), replace(second, config={"target": "a b"}))
    plan = replace(run.plan, axes={"target": ["a/b", "a b"]})
    names = [row.name for row in rows(replace(run, configurations=pair, plan=plan))]
    assert names == ["target=a,b", "target=a,b-2"]
    assert in_a_path("../..") == "unnamed"


def test_the_summary_is_of_the_best_and_has_its_gain() -> None:
    run = runs.typical()
    assert run.best
    found = summary(run)
    assert found["samples_per_s"] == run.best.samples_per_s.est
    assert found["gain_over_baseline"] == run.best.gain.est
    assert summary(runs.all_failed()) == {}


def test_the_facts_begin_with_the_verdict_and_have_no_empty_ones() -> None:
    found = facts(runs.all_failed())
    assert found["verdict"] == str(Run(runs.all_failed()).verdict)
    assert all(found.values())
    assert run_name(runs.typical()).startswith(f"{runs.typical().name}-20")
