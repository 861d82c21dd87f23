"""Ranks share the CPUs of their machine: none is advised to take all of them."""

from __future__ import annotations

from typing import Any

import pytest

from loaderbench.datasets.image_folder import ImageFolder
from loaderbench.diagnosis.cpu_use import workers_that_fit
from loaderbench.diagnosis.facts import Facts
from loaderbench.loaders import LOADER_BACKENDS
from loaderbench.records import Candidate, Config, Limit, Verdict, WorkerStates
from loaderbench.remedies import Diagnosis, candidates_for
from loaderbench.remedies.workers import workers_that_hide
from loaderbench.search import StepwiseSelection


@pytest.mark.parametrize(("ranks", "own_cpus", "fitting"), [(1, 2.0, 64), (8, 16.0, 8), (4, 8.0, 16), (64, 64.0, 1)])
def test_idle_cpus_are_divided_by_the_ranks(ranks: int, own_cpus: float, fitting: int) -> None:
    facts = Facts(workers=1 if ranks == 64 else 2, cpus=64, ranks=ranks, own_cpus=own_cpus)
    assert workers_that_fit(facts) == fitting


def tried(limit: Limit, **job: Any) -> dict[str, Config]:
    """The changes that are tried where a job has this limit."""
    return {found.id: found.change for found in candidates_of(limit, **job)}


def candidates_of(
    limit: Limit, *, ranks: int, workers: int, cpus: int = 16, samples_per_s: float = 4_000, options: Any = None
) -> tuple[Candidate, ...]:
    """The fixes that are tried where decoding on so many workers a rank has this limit."""
    facts = Facts(
        workers=workers,
        cpus=cpus,
        ranks=ranks,
        cpu_s={"decode": 4e-3},
        wall_s={"decode": 4e-3},
        loads=WorkerStates(on_cpu_share=0.5, run_queue_share=0.5, blocked_share=0.0, runnable_threads=4.0),
        own_cpus=float(cpus),
        samples_per_s=samples_per_s,
        ranks_of_rate=ranks,
        bytes_per_sample=1e5,
    )
    verdict = Verdict(bound="input", stage="decode", limit=limit, headline="", evidence=(), confidence="high")
    config: Config = {"ranks": ranks, "batch_size": 32, "num_workers": workers}
    found = Diagnosis(verdict, facts, config, {}, options=options, files=100, shared_memory_bytes=1 << 34)
    return candidates_for(found)


@pytest.mark.parametrize("limit", ["oversubscription", "cpu"])
def test_workers_of_all_ranks_beyond_the_cpus_are_tried_with_fewer(limit: Limit) -> None:
    assert tried(limit, ranks=8, workers=4)["fewer_workers"] == {"num_workers": 2}
    assert tried(limit, ranks=4, workers=1, cpus=2)["fewer_workers"] == {"num_workers": 0}
    assert "fewer_workers" not in tried(limit, ranks=8, workers=2)


def test_fewer_workers_are_tried_before_what_is_expected_to_gain_more() -> None:
    fewer, cache = (
        Candidate("fewer_workers", {"num_workers": 1}, 0.7, 0, first=True),
        Candidate("memory_cache", {"image_cache": "shared_memory"}, 2.0),
    )
    now: Config = {"ranks": 2, "num_workers": 4}
    selection = StepwiseSelection(now, now, lambda _: [cache, fewer], seed=0, most=1)
    assert selection.candidates == [fewer]
    tried_first = [found.id for found in candidates_of("oversubscription", ranks=8, workers=4) if found.first]
    assert tried_first == ["fewer_workers"]


def test_one_process_is_tried_with_fewer_only_where_threads_compete_and_never_with_none() -> None:
    assert tried("oversubscription", ranks=1, workers=4, cpus=1)["fewer_workers"] == {"num_workers": 1}
    assert "fewer_workers" not in tried("cpu", ranks=1, workers=32)


def test_ranks_that_compete_are_tried_with_less_decoding_too() -> None:
    options = ImageFolder().model_dump()
    assert tried("oversubscription", ranks=8, workers=2, options=options)["memory_cache"] == {
        "image_cache": "shared_memory"
    }


def test_workers_that_compete_are_tried_with_less_decoding_only_where_that_takes_the_cpus() -> None:
    options = ImageFolder().model_dump()
    found = candidates_of("oversubscription", ranks=1, workers=32, options=options)
    assert "memory_cache" in {one.id for one in found}
    assert [one.id for one in found if one.first] == ["fewer_workers"]
    idle = tried("oversubscription", ranks=1, workers=32, samples_per_s=400, options=options)
    assert "memory_cache" not in idle


def test_beside_other_programs_cheaper_stages_are_tried_and_no_more_workers() -> None:
    found = tried("neighbors", ranks=1, workers=2, options=ImageFolder().model_dump())
    assert {"faster_decoder", "memory_cache", "uint8_transport"} & found.keys()
    assert not {"more_workers", "fewer_workers"} & found.keys()


def test_workers_that_only_wait_are_divided_too() -> None:
    assert workers_that_hide(Facts(workers=1, cpus=16)) == 32
    assert workers_that_hide(Facts(workers=1, cpus=16, ranks=8)) == 8


def test_threads_of_a_rank_are_at_least_one() -> None:
    assert LOADER_BACKENDS["threads"].loading_in(0, {}) == {"threads": 1}
