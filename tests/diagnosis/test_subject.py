"""Which configuration the verdict describes, and what the sweep shows about similar ones."""

from __future__ import annotations

from typing import Any

import pytest
from machine import TWO_CPUS

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.subject import AT_THE_CAP, facts_of, find_subject, rate_cap, subject_config
from loaderbench.records import Best, Config, Configuration, Interval, Trial

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


def test_the_subject_is_the_best_by_the_axes_that_vary() -> None:
    subject = find_subject(best(WAIT), [found(2, 1)], AXES)
    assert subject is not None
    assert (subject.config, subject.is_best, subject.facts) == ({"num_workers": 7}, True, None)
    assert subject_config(best(WAIT), []) == {"num_workers": 7, "batch_size": 8}


def test_without_a_best_it_is_what_looked_fastest_of_what_was_measured() -> None:
    rows = [found(0, 3), found(1, 1, rate=None), found(3, 2), found(4, None), found(5, 1, wait=None)]
    for named in (None, best(None)):
        subject = find_subject(named, rows, AXES)
        assert subject is not None
        assert (subject.config, subject.is_best) == ({"num_workers": 3}, False)
        assert subject_config(named, rows) == {"num_workers": 3, "batch_size": 8}


def test_where_nothing_was_measured_there_is_none() -> None:
    assert find_subject(None, [found(1, None)], AXES) is None
    assert find_subject(best(None), [], AXES) is None
    assert subject_config(None, []) is None


def test_the_facts_are_those_of_the_whole_configuration() -> None:
    asked: list[Config] = []

    def facts_of(config: Config) -> Facts | None:
        asked.append(config)
        return Facts(workers=1, cpus=2)

    for named in (best(WAIT), None):
        subject = find_subject(named, [found(2, 1)], AXES, facts_of)
        assert subject is not None
        assert subject.facts is not None
    assert asked == [{"num_workers": 7, "batch_size": 8}, {"num_workers": 2, "batch_size": 8}]


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


def slower(config: Config, trials: list[Trial]) -> tuple[bool, bool]:
    facts = facts_of(config, trials, TWO_CPUS)
    assert facts is not None
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


def test_one_round_shows_nothing_to_be_slower() -> None:
    assert slower({"num_workers": 4}, [trial for trial in sweep({2: 100.0, 4: 200.0}) if trial.round == 1])[0] is False


def test_a_rate_at_the_demand_is_capped_by_it() -> None:
    below, at = ([found(0, 1, Interval(1000 * share, None, None))] for share in (AT_THE_CAP - 0.001, AT_THE_CAP))
    assert AT_THE_CAP == 0.97
    assert rate_cap((), below, "emulated", 1000.0) == ()
    (remark,) = rate_cap((), [*below, found(1, 2, None), *at], "emulated", 1000.0)
    assert "1,000" in remark
    assert rate_cap((remark,), at, "emulated", 1000.0) == ()
    assert rate_cap((), at, "model", 1000.0) == ()
    assert rate_cap((), [], "emulated", 1000.0) == ()


def test_one_worker_is_a_number_of_workers() -> None:
    assert slower({"num_workers": 0}, sweep({0: 200.0, 1: 100.0}))[1]


def test_as_many_workers_that_prefetch_less_are_not_fewer() -> None:
    trials = [*sweep({4: 200.0}, prefetch_factor=4), *sweep({4: 100.0}, prefetch_factor=2)]
    assert slower({"num_workers": 4, "prefetch_factor": 4}, trials) == (False, False)
