"""Ranks share the CPUs of their machine: none is advised to take all of them."""

from __future__ import annotations

import pytest

from loaderbench.diagnosis.facts import Facts
from loaderbench.remedies.workers import workers_that_fit, workers_that_hide


@pytest.mark.parametrize(("ranks", "own_cpus", "fitting"), [(1, 2.0, 64), (8, 16.0, 8), (4, 8.0, 16), (64, 64.0, 1)])
def test_idle_cpus_are_divided_by_the_ranks(ranks: int, own_cpus: float, fitting: int) -> None:
    facts = Facts(workers=1 if ranks == 64 else 2, cpus=64, ranks=ranks, own_cpus=own_cpus)
    assert workers_that_fit(facts) == fitting


def test_workers_that_only_wait_are_divided_too() -> None:
    assert workers_that_hide(Facts(workers=1, cpus=16)) == 32
    assert workers_that_hide(Facts(workers=1, cpus=16, ranks=8)) == 8
