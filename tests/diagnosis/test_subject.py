"""Which configuration the verdict describes, and what the sweep shows about similar ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from machine import TWO_CPUS

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.gathering import facts_of
from loaderbench.diagnosis.subject import AT_THE_CAP, Subject, find_subject, rate_cap, subject_of
from loaderbench.records import Best, Config, Configuration, Interval, Trial
from loaderbench.statistics.configurations import ratio_of

RATE, WAIT = Interval(100.0, 90.0, 110.0), Interval(0.5, 0.4, 0.6)
AXES: dict[str, list[Any]] = {"num_workers": [0, 2], "batch_size": [8]}


def found(workers: int, rank: int | None, rate: Interval | None = RATE, wait: Interval | None = WAIT) -> Configuration:
    config: Config = {"num_workers": workers, "batch_size": 8}
    return Configuration(
        config=config, samples_per_s=rate, data_wait_share=wait, trials=(), rank=rank, tied_with_best=False
    )


def best(wait: Interval | None) -> Best:
    config: Config = {"num_workers": 7, "batch_size": 8}
    return Best(config=config, samples_per_s=RATE, data_wait_share=wait, ties=(), why_this_one="", gain=None)


def test_the_subject_is_the_best() -> None:
    assert find_subject(best(WAIT), [found(2, 1)]) == best(WAIT)


def test_without_a_best_it_is_what_looked_fastest_of_what_was_measured() -> None:
    rows = [found(0, 3), found(1, 1, rate=None), found(3, 2), found(4, None), found(5, 1, wait=None)]
    assert find_subject(None, rows) == find_subject(best(None), rows) == found(3, 2)


def test_where_nothing_was_measured_there_is_none() -> None:
    assert find_subject(None, [found(1, None)]) is None
    assert find_subject(best(None), []) is None


def test_a_verdict_names_the_subject_by_the_axes_that_vary() -> None:
    facts = Facts(workers=1, cpus=2)
    assert subject_of(best(WAIT), AXES, facts, is_best=True) == Subject({"num_workers": 7}, RATE, WAIT, True, facts)
    assert subject_of(found(3, 2), AXES, None, is_best=False) == Subject({"num_workers": 3}, RATE, WAIT, False, None)
    assert subject_of(found(3, 2, wait=None), AXES, facts, is_best=False) is None


def test_rounds_of_the_sweep_are_not_paired_with_those_of_the_remedies() -> None:
    """Both count from 1: a machine twice as fast while remedies are tried is no reason to add workers."""
    later = [replace(trial, role="remedy") for trial in sweep({4: 400.0})]
    trials = sweep({2: 210.0, 4: 200.0}) + later
    assert slower({"num_workers": 4}, trials)[0] is False
    assert ratio_of({"num_workers": 4}, {"num_workers": 2}, trials).est == pytest.approx(200 / 210)


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


def known(config: Config, trials: list[Trial]) -> Facts:
    facts = facts_of(config, trials, TWO_CPUS)
    assert facts is not None
    return facts


def slower(config: Config, trials: list[Trial]) -> tuple[bool, bool]:
    facts = known(config, trials)
    return facts.fewer_are_slower, facts.workers_are_slower


@pytest.mark.parametrize(
    ("rates", "workers", "fewer"),
    [
        ({2: 100.0, 4: 200.0}, 4, True),
        ({2: 100.0, 4: 200.0}, 2, False),
        ({4: 200.0, 8: 100.0}, 4, False),
        ({0: 100.0, 4: 200.0}, 4, False),
        ({1: 100.0, 4: 200.0}, 4, True),
        ({2: 200.0, 4: 200.0}, 4, False),
    ],
)
def test_fewer_workers_are_slower_only_where_some_are_there_and_were_seen_to_be(
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


def test_a_rate_at_the_demand_is_capped_by_it() -> None:
    below, at = ([found(0, 1, Interval(1000 * share, None, None))] for share in (AT_THE_CAP - 0.001, AT_THE_CAP))
    assert AT_THE_CAP == 0.97
    assert rate_cap((), below, 1000.0) == ()
    (remark,) = rate_cap((), [*below, found(1, 2, None), *at], 1000.0)
    assert "1,000" in remark
    assert rate_cap((remark,), at, 1000.0) == ()
    assert rate_cap((), at, None) == ()
    assert rate_cap((), [], 1000.0) == ()


def test_one_worker_is_a_number_of_workers() -> None:
    assert slower({"num_workers": 0}, sweep({0: 200.0, 1: 100.0}))[1]


def test_as_many_workers_that_prefetch_less_are_not_fewer() -> None:
    trials = [*sweep({4: 200.0}, prefetch_factor=4), *sweep({4: 100.0}, prefetch_factor=2)]
    assert slower({"num_workers": 4, "prefetch_factor": 4}, trials) == (False, False)
