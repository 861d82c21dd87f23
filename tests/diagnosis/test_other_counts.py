"""What measurements of other worker counts show about a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from machine import TWO_CPUS

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.gathering import gather
from loaderbench.diagnosis.worker_settings import of_setting, with_other_counts
from loaderbench.records import Config, Interval, Trial, WorkerSetting, WorkerSettingName
from loaderbench.statistics.configurations import ratio_of


def sweep(rates: dict[int | None, float], **others: Any) -> list[Trial]:
    return [
        Trial(
            id=f"r{number}-{workers}",
            role="sweep",
            config={"num_workers": workers, **others},
            round=number,
            status="completed",
            samples_per_s=rate * (1 + number / 1000),
            samples=10,
            batches=1,
        )
        for number in (1, 2, 3)
        for workers, rate in rates.items()
    ]


def known(config: Config, trials: list[Trial], settings: Sequence[WorkerSetting] = ()) -> Facts:
    facts = gather([trial for trial in trials if trial.config == config], TWO_CPUS)
    assert facts is not None
    return with_other_counts(facts, config, {}, trials, settings)


def slower(config: Config, trials: list[Trial]) -> tuple[bool, bool]:
    facts = known(config, trials)
    return facts.fewer_are_no_faster, facts.workers_are_slower


def test_rounds_of_the_sweep_are_not_paired_with_those_of_the_remedies() -> None:
    """Both count from 1: a machine twice as fast while remedies are tried is no reason to add workers."""
    later = [replace(trial, role="remedy") for trial in sweep({4: 400.0})]
    trials = sweep({2: 210.0, 4: 200.0}) + later
    assert slower({"num_workers": 4}, trials)[0] is False
    assert ratio_of({"num_workers": 4}, {"num_workers": 2}, trials).est == pytest.approx(200 / 210)


@pytest.mark.parametrize(
    ("rates", "workers", "fewer"),
    [
        ({2: 100.0, 4: 200.0}, 4, True),
        ({2: 100.0, 4: 200.0}, 2, False),
        ({4: 200.0, 8: 100.0}, 4, False),
        ({0: 100.0, 4: 200.0}, 4, False),
        ({1: 100.0, 4: 200.0}, 4, False),  # they leave one of two CPUs idle
        ({1: 100.0, 2: 200.0}, 2, True),
        ({2: 200.0, 4: 200.0}, 4, True),
        ({2: 208.0, 4: 200.0}, 4, True),
        ({2: 220.0, 4: 200.0}, 4, False),
        ({3: 200.0, 8: 200.0}, 8, True),
    ],
)
def test_fewer_workers_are_no_faster_only_where_some_are_there_and_leave_no_cpu_idle(
    rates: dict[int | None, float], workers: int, fewer: bool
) -> None:
    assert slower({"num_workers": workers}, sweep(rates))[0] == fewer


@pytest.mark.parametrize(
    ("rates", "all_slower"),
    [
        ({0: 200.0, 1: 100.0, 2: 90.0}, True),
        ({0: 200.0, 1: 100.0, 2: 300.0}, False),
        ({0: 200.0, 1: 100.0, 2: 200.0}, False),
        ({0: 200.0}, False),
        ({0: 200.0, None: 100.0}, False),
    ],
)
def test_any_workers_are_slower_only_where_all_that_were_measured_are(
    rates: dict[int | None, float], all_slower: bool
) -> None:
    assert slower({"num_workers": 0}, sweep(rates))[1] == all_slower


def test_what_differs_in_more_than_the_workers_is_not_compared() -> None:
    trials = [*sweep({4: 200.0}, batch_size=8), *sweep({2: 100.0}, batch_size=16)]
    assert slower({"num_workers": 4, "batch_size": 8}, trials) == (False, False)
    prefetching = [*sweep({4: 200.0}, prefetch_factor=2), *sweep({2: 100.0}, prefetch_factor=8)]
    assert slower({"num_workers": 4, "prefetch_factor": 2}, prefetching) == (True, False)


@pytest.mark.parametrize(
    ("rates", "workers", "no_faster"),
    [
        ({2: 200.0, 3: 202.0}, 2, True),
        ({2: 200.0, 3: 150.0}, 2, True),
        ({2: 200.0, 3: 250.0}, 2, False),
        ({2: 200.0, 3: 202.0}, 3, False),
        ({0: 200.0, 2: 150.0}, 0, True),
    ],
)
def test_more_workers_are_no_faster_where_they_were_measured_without_a_gain(
    rates: dict[int | None, float], workers: int, no_faster: bool
) -> None:
    assert known({"num_workers": workers}, sweep(rates)).more_are_no_faster is no_faster


def test_one_round_shows_nothing_to_be_slower() -> None:
    assert slower({"num_workers": 4}, [trial for trial in sweep({2: 100.0, 4: 200.0}) if trial.round == 1])[0] is False


def test_one_worker_is_a_number_of_workers() -> None:
    assert slower({"num_workers": 0}, sweep({0: 200.0, 1: 100.0}))[1]


def test_as_many_workers_that_prefetch_less_are_not_fewer() -> None:
    trials = [*sweep({4: 200.0}, prefetch_factor=4), *sweep({4: 100.0}, prefetch_factor=2)]
    assert slower({"num_workers": 4, "prefetch_factor": 4}, trials) == (False, False)


def setting(change: Config, gain: float, width: float = 0.01) -> WorkerSetting:
    found = Interval(gain, gain - width, gain + width)
    name: WorkerSettingName = "fewer_workers" if "num_workers" in change else "one_library_thread"
    return WorkerSetting(name=name, change=change, samples_per_s=found, gain=found)


@pytest.mark.parametrize(
    ("workers", "more", "gain", "no_faster", "faster"),
    [
        (16, 20, 1.00, True, False),
        (16, 20, 1.05, False, False),  # surely faster, and not by as much as workers that were missing
        (16, 20, 1.13, False, True),  # four more of 16 would give 25%
        (2, 3, 1.005, True, False),
        (2, 3, 1.08, False, False),
        (2, 3, 1.27, False, True),
        (0, 1, 1.005, False, False),  # a worker in place of the main process is no more
        (0, 2, 1.6, False, True),
    ],
)
def test_more_workers_have_to_give_half_of_what_those_present_do(
    workers: int, more: int, gain: float, no_faster: bool, faster: bool
) -> None:
    facts = known({"num_workers": workers}, sweep({workers: 200.0}), [setting({"num_workers": more}, gain)])
    assert (facts.more_are_no_faster, facts.more_are_faster) == (no_faster, faster)


@pytest.mark.parametrize(
    ("count", "gain", "width", "faster", "no_faster"),
    [
        (2, 1.07, 0.01, True, False),
        (2, 1.04, 0.02, False, False),  # surely faster, and maybe noticeably
        (2, 1.03, 0.01, False, True),
        (2, 1.01, 0.08, False, True),
        (2, 1.02, 0.09, False, False),
        (2, 0.9, 0.01, False, True),
        (0, 1.5, 0.01, False, False),
    ],
)
def test_fewer_workers_are_faster_from_a_noticeable_gain_on(
    count: int, gain: float, width: float, faster: bool, no_faster: bool
) -> None:
    """No worker at all is another way to load."""
    facts = known({"num_workers": 8}, sweep({8: 200.0}), [setting({"num_workers": count}, gain, width)])
    assert (facts.fewer_are_faster, facts.fewer_are_no_faster) == (faster, no_faster)
    assert not facts.one_thread_is_faster


@pytest.mark.parametrize(
    ("gain", "faster", "no_faster"),
    [(1.2, True, False), (1.045, False, False), (1.02, False, True), (0.9, False, True)],
)
def test_one_library_thread_is_apart_from_fewer_workers(gain: float, faster: bool, no_faster: bool) -> None:
    facts = known({"num_workers": 8}, sweep({8: 200.0}), [setting({"worker_threads": 1}, gain)])
    assert (facts.one_thread_is_faster, facts.one_thread_is_no_faster) == (faster, no_faster)
    assert (facts.fewer_are_faster, facts.fewer_are_no_faster) == (False, False)
    assert facts.less_is_faster is faster


@pytest.mark.parametrize(("rate", "faster"), [(240.0, True), (180.0, False)])
def test_one_library_thread_counts_as_a_fix_that_was_tried_as_well(rate: float, faster: bool) -> None:
    one_thread = [replace(trial, config={**trial.config, "worker_threads": 1}) for trial in sweep({8: rate})]
    facts = known({"num_workers": 8}, [*sweep({8: 200.0}), *one_thread])
    assert (facts.one_thread_is_faster, facts.one_thread_is_no_faster) == (faster, not faster)
    assert not facts.fewer_are_no_faster


def test_a_fix_that_was_tried_counts_like_the_sweep() -> None:
    tried = [replace(trial, role="remedy") for trial in sweep({2: 200.0, 3: 200.0})]
    assert known({"num_workers": 2}, [*sweep({2: 200.0}), *tried]).more_are_no_faster


def test_a_small_gain_that_is_sure_is_not_called_none() -> None:
    """Where a step takes most of the time, more workers that end all waits gain a few percent."""
    tried = [replace(trial, role="remedy") for trial in sweep({4: 200.0, 8: 216.0})]
    assert not known({"num_workers": 4}, [*sweep({4: 200.0}), *tried]).more_are_no_faster


def test_a_longer_queue_that_is_faster_is_no_fewer_workers() -> None:
    trials = [*sweep({2: 200.0}, prefetch_factor=2), *sweep({2: 230.0}, prefetch_factor=8)]
    facts = known({"num_workers": 2, "prefetch_factor": 2}, trials)
    assert (facts.less_is_faster, facts.more_are_faster) == (False, False)


@pytest.mark.parametrize(
    ("more", "gain", "width", "decided"),
    [
        (3, 1.0, 0.05, True),
        (3, 1.0, 0.2, False),
        (3, 1.3, 0.1, True),
        (1, 0.6, 0.1, True),
        (1, 1.0, 0.09, True),
        (1, 1.02, 0.09, False),
    ],
)
def test_another_round_is_measured_while_it_may_tell_something_new(
    more: int, gain: float, width: float, decided: bool
) -> None:
    found = of_setting(setting({"num_workers": more}, gain, width), {"num_workers": 2}, {})
    assert found.is_decided is decided
