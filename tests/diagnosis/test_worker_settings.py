"""Which other workers are measured next to free stages, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.worker_settings import (
    describe_worker_settings,
    settings_to_measure,
    worker_settings_in_words,
)
from loaderbench.records import Config, TimeSlices, Trial, WorkerSetting, WorkerStates

TWO = Facts(workers=2, cpus=2.0)
OF_LIBRARIES = WorkerStates(
    on_cpu_share=0.5, run_queue_share=0.5, blocked_share=0.0, runnable_threads=4.0, other_threads_cpu_share=0.5
)


def trial(config: Config, number: int = 1, rate: float | None = 100.0, **fields: Any) -> Trial:
    return Trial(
        **{"id": f"{number}-{config}", "role": "freed", **fields},
        config=config,
        round=number,
        status="failed" if rate is None else "completed",
        samples_per_s=rate,
        time_slices=TimeSlices(10, 10, 100, 1.0),
    )


def counts(config: Config, swept: list[Config], facts: Facts = TWO, **loader: Any) -> list[object]:
    sweep = [trial(one, number, role="sweep") for one in swept for number in (1, 2)]
    found = settings_to_measure(config, loader, facts, sweep)
    return [one["num_workers"] for one in found]


@pytest.mark.parametrize(
    ("swept", "now", "expected"),
    [
        ([2], 2, [3, 1]),
        ([0, 1, 2], 2, [3]),
        ([0, 2], 2, [3, 1]),  # no worker at all is another way to load
        ([2, 4], 2, [1]),
        ([1, 2, 4], 2, []),
        ([8], 8, [10, 2]),  # a quarter more, as one more would be lost in the noise; one for each CPU
        ([1, 8], 8, [10, 2]),  # one worker leaves a CPU idle
        ([1, 4, 8], 8, [10]),
        ([1], 1, [2]),
        ([0], 0, [2]),  # one would only take the place of the main process
    ],
)
def test_counts_that_the_sweep_lacks_are_measured(swept: list[int], now: int, expected: list[int]) -> None:
    facts = replace(TWO, workers=now)
    assert counts({"num_workers": now}, [{"num_workers": count} for count in swept], facts) == expected


def test_a_count_that_was_swept_with_another_batch_size_is_not_known() -> None:
    swept: list[Config] = [{"num_workers": 2, "batch_size": 8}, {"num_workers": 3, "batch_size": 16}]
    assert counts(swept[0], swept) == [3, 1]


def test_a_count_of_the_suite_is_changed_for_one_configuration() -> None:
    assert counts({"batch_size": 8}, [{"batch_size": 8}], num_workers=2) == [3, 1]


@pytest.mark.parametrize("loader", ["threads", "tf_data", "grain"])
def test_of_another_loader_none_are_measured(loader: str) -> None:
    assert settings_to_measure({"threads": 2}, {"loader": loader}, TWO, []) == ()
    assert settings_to_measure({"loader": loader, "num_workers": 2}, {}, TWO, []) == ()


def test_a_count_is_known_by_two_rounds_and_a_larger_one_that_failed_is_not_tried() -> None:
    now: Config = {"num_workers": 2}
    once = [trial(now, number, role="sweep") for number in (1, 2)] + [trial({"num_workers": 4}, 1, role="sweep")]
    assert [one["num_workers"] for one in settings_to_measure(now, {}, TWO, once)] == [3, 1]
    failed = [trial(now, role="sweep"), trial({"num_workers": 4}, 1, None, role="sweep")]
    assert [one["num_workers"] for one in settings_to_measure(now, {}, TWO, failed)] == [1]
    failed = [trial(now, role="sweep"), trial({"num_workers": 1}, 1, None, role="sweep")]
    assert [one["num_workers"] for one in settings_to_measure(now, {}, TWO, failed)] == [3, 1]


def test_no_more_workers_than_a_suite_may_have() -> None:
    many = replace(TWO, workers=1024)
    assert [one["num_workers"] for one in settings_to_measure({"num_workers": 1024}, {}, many, [])] == [2]


def test_one_library_thread_is_tried_where_workers_have_more() -> None:
    threads = replace(TWO, loads=OF_LIBRARIES)
    assert settings_to_measure({"num_workers": 2}, {}, threads, [])[-1] == {"num_workers": 2, "worker_threads": 1}
    for loads in (replace(OF_LIBRARIES, runnable_threads=2.4), replace(OF_LIBRARIES, other_threads_cpu_share=0.05)):
        found = settings_to_measure({"num_workers": 2}, {}, replace(TWO, loads=loads), [])
        assert all("worker_threads" not in one for one in found)
    assert all("worker_threads" not in one for one in settings_to_measure({"num_workers": 0}, {}, threads, []))


def rounds(**rates: float | None) -> list[Trial]:
    """Three rounds of two workers at 100 samples/s, and of other counts, on a machine that changes by a tenth."""
    speeds = enumerate((1.0, 0.9, 1.1), 1)
    return [
        trial({"num_workers": int(count[1:])}, number, rate and rate * speed)
        for number, speed in speeds
        for count, rate in {"w2": 100.0, **rates}.items()
    ]


def described(trials: list[Trial], config: Config | None = None) -> tuple[WorkerSetting, ...]:
    return describe_worker_settings(trials, config or {"num_workers": 2}, {}, {})[0]


def test_gains_are_paired_by_round_and_named_by_what_changes() -> None:
    found = described(rounds(w3=130.0, w1=60.0))
    assert [(one.name, one.change) for one in found] == [
        ("fewer_workers", {"num_workers": 1}),
        ("more_workers", {"num_workers": 3}),
    ]
    assert [round(one.gain.est, 6) for one in found] == [0.6, 1.3]
    assert found[1].gain.lo == pytest.approx(1.3)
    assert len(found[1].trials) == 3


def test_a_trial_with_a_free_stage_is_none_of_them() -> None:
    assert described([replace(one, freed="decode") for one in rounds(w3=130.0)]) == ()


def test_what_failed_or_had_no_time_has_its_reason() -> None:
    left_out = {"worker_settings.num_workers=1": "no time", "bottlenecks.read": "no time"}
    found, reasons = describe_worker_settings(rounds(w3=None), {"num_workers": 2}, {}, left_out)
    assert found == ()
    assert reasons == {
        "worker_settings.num_workers=1": "no time",
        "worker_settings.num_workers=3": "never measured in the same round as the unmodified loader",
    }


def test_a_configuration_with_two_changes_is_none_of_them() -> None:
    both: Config = {"num_workers": 3, "worker_threads": 1}
    trials = rounds(w3=130.0) + [trial(both, number, 200.0) for number in (1, 2, 3)]
    assert [one.change for one in described(trials)] == [{"num_workers": 3}]
    assert [one.change for one in described(trials, {"num_workers": 3})] == [{"num_workers": 2}, {"worker_threads": 1}]
    assert described(trials, both) == ()


def test_a_line_has_gains_losses_and_what_is_not_significant_but_nothing_of_one_round() -> None:
    trials = rounds(w3=130.0, w1=60.0)
    trials += [trial({"num_workers": 4}, number, rate) for number, rate in ((1, 90.0), (2, 100.0), (3, 110.0))]
    trials += [trial({"num_workers": 5}, 1, 150.0)]
    (line,) = worker_settings_in_words(described(trials))
    assert str(line) == (
        "Other worker settings: num_workers=1: -40% (-40 to -40%); "
        "num_workers=3: +30% (30\N{EN DASH}30%); num_workers=4: not significant"
    )
    assert worker_settings_in_words(()) == ()
