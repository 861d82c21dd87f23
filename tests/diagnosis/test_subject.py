"""Which configuration the verdict describes."""

from __future__ import annotations

from typing import Any

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.ranking import AT_THE_CAP, Subject, find_subject, rate_cap, subject_of
from loaderbench.records import Best, Config, Configuration, Interval

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


def test_a_rate_at_the_demand_is_capped_by_it() -> None:
    below, at = ([found(0, 1, Interval(1000 * share, None, None))] for share in (AT_THE_CAP - 0.001, AT_THE_CAP))
    assert AT_THE_CAP == 0.97
    assert rate_cap((), below, 1000.0) == ()
    (remark,) = rate_cap((), [*below, found(1, 2, None), *at], 1000.0)
    assert "1,000" in remark
    assert rate_cap((remark,), at, 1000.0) == ()
    assert rate_cap((), at, None) == ()
    assert rate_cap((), [], 1000.0) == ()
