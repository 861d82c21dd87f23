"""Ranks share the CPUs of their machine: none is advised to take all of them."""

from __future__ import annotations

import pytest

from loaderbench.diagnosis.facts import Facts
from loaderbench.records import Verdict, WorkerStates
from loaderbench.remedies import Diagnosis, candidates_for
from loaderbench.remedies.workers import workers_that_fit, workers_that_hide


@pytest.mark.parametrize(("ranks", "own_cpus", "fitting"), [(1, 2.0, 64), (8, 16.0, 8), (4, 8.0, 16), (64, 64.0, 1)])
def test_idle_cpus_are_divided_by_the_ranks(ranks: int, own_cpus: float, fitting: int) -> None:
    facts = Facts(workers=1 if ranks == 64 else 2, cpus=64, ranks=ranks, own_cpus=own_cpus)
    assert workers_that_fit(facts) == fitting


def test_workers_of_all_ranks_beyond_the_cpus_are_tried_with_fewer() -> None:
    facts = Facts(
        workers=4,
        cpus=16,
        ranks=8,
        cpu_s={"decode": 4e-3},
        wall_s={"decode": 4e-3},
        loads=WorkerStates(on_cpu_share=0.5, run_queue_share=0.5, blocked_share=0.0, runnable_threads=4.0),
        own_cpus=16.0,
        samples_per_s=4_000,
        ranks_of_rate=8,
    )
    verdict = Verdict(
        bound="input", stage="decode", limit="oversubscription", headline="", evidence=(), confidence="high"
    )
    config = {"ranks": 8, "batch_size": 32, "num_workers": 4}
    candidates = {found.id: found.change for found in candidates_for(Diagnosis(verdict, facts, config, {}))}
    assert candidates["fewer_workers"] == {"num_workers": 2}


def test_workers_that_only_wait_are_divided_too() -> None:
    assert workers_that_hide(Facts(workers=1, cpus=16)) == 32
    assert workers_that_hide(Facts(workers=1, cpus=16, ranks=8)) == 8
