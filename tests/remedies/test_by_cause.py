"""Each remedy of a cause fires on its own cause and on no other; what is so already is not advised."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from loaderbench.analysis.facts import Facts
from loaderbench.records import Recommendation, Verdict, WorkerStates
from loaderbench.remedies import REMEDIES, Diagnosis, Findings, recommend
from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst

FACTS = Facts(
    workers=2,
    cpus=4,
    samples_per_s=400,
    batch_samples=32,
    cpu_s={"decode": 4e-3},
    wall_s={"decode": 4e-3},
    loads=WorkerStates(on_cpu_share=0.9, run_queue_share=0.0, blocked_share=0.1, runnable_threads=2.0),
    own_cpus=2.0,
)
CONFIG = {"batch_size": 32, "num_workers": 2, "persistent_workers": False}
LARGE = replace(FACTS, bytes_per_sample=5e6)
TINY = replace(FACTS, wall_s={"sample": 1e-6})
THREADS = replace(
    FACTS, loads=WorkerStates(on_cpu_share=0.5, run_queue_share=0.5, blocked_share=0.0, runnable_threads=16.0)
)

CAUSES: dict[str, tuple[str, str, str | None, Facts]] = {
    "main_process_loading": ("input", "decode", "workers", replace(FACTS, workers=0)),
    "more_workers": ("input", "decode", "workers", FACTS),
    "fewer_workers": ("input", "decode", "oversubscription", replace(FACTS, workers=8)),
    "library_threads": ("input", "transform", "oversubscription", THREADS),
    "cpu_quota": ("input", "decode", "quota", FACTS),
    "workers_beyond_cores": ("input", "sample", "storage_latency", FACTS),
    "cold_cache": ("input", "read", "storage_bandwidth", FACTS),
    "release_lock": ("input", "sample", "lock", FACTS),
    "move_into_workers": ("input", "main_process", "lock", FACTS),
    "persistent_workers": ("input", "startup", "startup", FACTS),
    "larger_epochs": ("input", "startup", "startup", replace(FACTS, workers=0)),
    "out_of_order": ("input", "stragglers", "order", FACTS),
    "slow_samples": ("input", "stragglers", "storage_latency", FACTS),
    "no_workers_for_tiny_samples": ("input", "transport", "lock", TINY),
    "uint8_transport": ("input", "transport", "memory", FACTS),
    "page_faults": ("input", "sample", "memory", FACTS),
    "jpeg_draft": ("input", "decode", "cpu", LARGE),
    "faster_decoder": ("input", "decode", "cpu", FACTS),
    "transforms_v2_uint8": ("input", "transform", "cpu", FACTS),
    "cheaper_collate": ("input", "collate", "cpu", FACTS),
    "cheaper_read": ("input", "read", "cpu", FACTS),
    "cheaper_sample": ("input", "sample", "cpu", FACTS),
    "fewer_copies": ("transfer", "", None, FACTS),
}


def findings(bound: str, stage: str, limit: str | None, facts: Facts, **config: object) -> Findings:
    verdict = Verdict(
        bound=bound,  # type: ignore[arg-type]
        stage=stage or None,
        limit=limit,
        headline="",
        evidence=("why", "waits", "delivers"),
        confidence="medium",
    )
    known = {**CONFIG, "num_workers": facts.workers, **config}
    diagnosis = Diagnosis(verdict, facts, known, {})  # type: ignore[arg-type]
    return Findings([], [], None, known, {}, False, diagnosis=diagnosis, profile=True)  # type: ignore[arg-type]


def advice(*cause: object, **config: object) -> list[Recommendation]:
    return list(recommend(findings(*cause, **config)))  # type: ignore[arg-type]


def test_every_remedy_of_a_cause_has_a_case_here() -> None:
    assert {r.id for r in REMEDIES if isinstance(r, CauseRemedy | MeasuredFirst)} == set(CAUSES)


@pytest.mark.parametrize("remedy", CAUSES)
def test_a_remedy_fires_first_on_its_own_cause(remedy: str) -> None:
    found = advice(*CAUSES[remedy])
    assert found
    assert found[0].id == remedy
    assert (found[0].status, found[0].basis, found[0].gain) == ("open", "heuristic", None)
    assert found[0].evidence == ("why", "waits")
    assert "{" not in found[0].title


def test_a_loader_that_keeps_up_is_advised_nothing() -> None:
    assert advice("compute", "", "none", FACTS) == []
    assert advice("unknown", "", None, FACTS) == []


def test_a_change_names_a_value_that_is_not_there_yet() -> None:
    for cause in CAUSES.values():
        for found in advice(*cause):
            assert all(CONFIG.get(name) != value or name == "num_workers" for name, value in found.change.items())
    assert [found.id for found in advice(*CAUSES["persistent_workers"], persistent_workers=True)] == ["larger_epochs"]


def test_no_two_remedies_of_one_cause_change_the_same_argument() -> None:
    for cause in CAUSES.values():
        for one, other in combinations(advice(*cause), 2):
            assert not one.change.keys() & other.change.keys()


def test_more_workers_are_as_many_as_the_cpus_that_are_left_can_feed() -> None:
    assert advice(*CAUSES["more_workers"])[0].change == {"num_workers": 4}
    assert advice(*CAUSES["main_process_loading"])[0].change == {"num_workers": 4}
    assert advice(*CAUSES["fewer_workers"])[0].change == {"num_workers": 4}


def test_snippets_of_arguments_can_be_run_and_others_say_what_to_write() -> None:
    found = advice(*CAUSES["out_of_order"])[0]
    assert "in_order=True" not in (found.snippet or "")
    assert "in_order=False" in (found.snippet or "")
    assert "sched_setaffinity" in (advice(*CAUSES["cpu_quota"])[0].snippet or "")
