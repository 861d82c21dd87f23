"""Advice fits what was seen of threads, datasets and loaders."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planted_causes import CAUSES, FACTS, Case as Cause, diagnosis, told

from loaderbench.records import Evidence, WorkerStates
from loaderbench.remedies import candidates_for

SPINNING = WorkerStates(
    on_cpu_share=0.95,
    run_queue_share=0.0,
    blocked_share=0.05,
    other_threads_cpu_share=0.95,
    runnable_threads=1.9,
)
IN_A_POOL = WorkerStates(
    on_cpu_share=0.05,
    run_queue_share=0.0,
    blocked_share=0.95,
    other_threads_cpu_share=0.95,
    runnable_threads=1.0,
    blocked_on={"lock": 0.95, "running": 0.05},
)


def ids(cause: Cause, **changes: object) -> dict[str, str]:
    """The titles of the fixes for a script's loader, by id."""
    return {fix.id: fix.title for fix in told(replace(diagnosis(cause), options=None, **changes))}  # type: ignore[arg-type]


def test_library_threads_that_fill_the_cpus_are_limited() -> None:
    busy = replace(FACTS, workers=1, loads=SPINNING, own_cpus=2.0, idle_cpus=0.0)
    assert "library_threads" in ids(Cause("sample", "cpu", busy))
    alone = replace(busy, loads=replace(SPINNING, other_threads_cpu_share=0.02, runnable_threads=1.0))
    assert "library_threads" not in ids(Cause("sample", "cpu", alone))


def test_a_thread_pool_without_workers_is_replaced_by_worker_processes() -> None:
    pool = replace(
        FACTS,
        workers=0,
        loads=IN_A_POOL,
        main=IN_A_POOL,
        cpus=2,
        own_cpus=1.0,
        idle_cpus=1.0,
        cpu_s={"sample": 1e-5},
        wall_s={"sample": 1e-3},
    )
    found = ids(Cause("sample", "lock", pool))
    assert found["process_loader"] == "Load in 2 worker processes instead of threads"
    assert "release_lock" not in found
    in_workers = ids(Cause("sample", "lock", replace(pool, workers=2)))
    assert "release_lock" in in_workers
    assert "process_loader" not in in_workers


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_stream_has_no_sampler_to_make_endless(is_stream: bool) -> None:
    title = ids(CAUSES["larger_epochs"], traits={"stream": "Shards"} if is_stream else {})["larger_epochs"]
    assert ("sampler" in title) is not is_stream


@pytest.mark.parametrize("persists", [False, True])
def test_a_loader_that_is_made_anew_for_each_epoch_is_to_be_made_once(persists: bool) -> None:
    case = replace(CAUSES["persistent_workers"], silent={})
    changed = {"config": {**diagnosis(case).config, "persistent_workers": persists}}
    found = ids(case, traits={"new_loader": "a later epoch has another DataLoader"}, **changed)
    assert found["persistent_workers"].startswith("Create the DataLoader before the first epoch")
    assert "larger_epochs" not in found
    assert ("persistent_workers" in ids(case, **changed)) is not persists


def test_the_workers_of_a_target_s_own_loader_are_kept_or_not_whatever_the_suite_says() -> None:
    case = CAUSES["persistent_workers"]
    restarted, kept = (replace(case, facts=replace(case.facts, workers_persist=seen)) for seen in (False, True))
    assert "persistent_workers" in ids(restarted)
    assert ids(kept).keys() & {"persistent_workers", "larger_epochs"} == {"larger_epochs"}


def test_keeping_workers_is_tried_in_a_run() -> None:
    in_a_run = replace(diagnosis(CAUSES["persistent_workers"]), profile=False)
    (found,) = candidates_for(in_a_run)
    assert found.change == {"persistent_workers": True}
    assert candidates_for(replace(in_a_run, profile=True)) == ()


def test_two_loaders_with_a_worker_each_compete_until_samples_are_cheaper() -> None:
    alone = replace(FACTS.loads, runnable_threads=1.0, other_threads_cpu_share=0.0)
    one = replace(FACTS, workers=1, loads=alone, own_cpus=2.0, idle_cpus=0.0, samples_per_s=100)
    assert "faster_decoder" in ids(Cause("decode", "oversubscription", one))
    threads = replace(SPINNING, runnable_threads=3.0)
    assert "faster_decoder" not in ids(Cause("decode", "oversubscription", replace(one, loads=threads)))


def test_advice_for_the_bottleneck_comes_before_advice_for_another_stage() -> None:
    slow = {"decode": 2e-3, "sample": 8e-3}
    found = list(ids(Cause("sample", "cpu", replace(FACTS, cpu_s=slow, wall_s=slow))))
    assert found.index("cheaper_sample") < found.index("faster_decoder")
    fast = {"decode": 8e-3, "transform": 2e-3}
    found = list(ids(Cause("decode", "cpu", replace(FACTS, cpu_s=fast, wall_s=fast))))
    assert found.index("faster_decoder") < found.index("transforms_v2_uint8")


def test_transforms_of_another_library_are_not_replaced() -> None:
    cpu_s = {"transform": 8e-3}
    case = Cause("transform", "cpu", replace(FACTS, cpu_s=cpu_s, wall_s=cpu_s))
    assert "transforms_v2_uint8" in ids(case)
    assert "transforms_v2_uint8" not in ids(case, traits={"other_transforms": "ElasticTransform"})


STARTS = replace(FACTS, startup_s=0.9, startup_share=0.42)


def test_slow_epoch_starts_have_a_fix_next_to_that_of_another_bottleneck() -> None:
    found = told(replace(diagnosis(Cause("sample", "cpu", STARTS)), options=None, profile=True))
    ranks = [fix.id for fix in found if fix.status == "open"]
    assert ranks.index("persistent_workers") > 0
    kept = replace(STARTS, workers_persist=True)
    small = replace(STARTS, startup_share=0.09)
    sampled = replace(STARTS, sampler_start_s=0.8)
    partly = replace(STARTS, startup_share=0.1, sampler_start_s=0.1)
    for facts in (kept, small, sampled, partly, replace(STARTS, workers=0), replace(STARTS, from_outside=True)):
        assert "persistent_workers" not in ids(Cause("sample", "cpu", facts), profile=True)
    assert "persistent_workers" not in ids(Cause("sample", "cpu", STARTS), profile=True, traits={"stream": "Shards"})
    assert "persistent_workers" not in ids(Cause("sample", "cpu", STARTS), profile=False)


def test_the_evidence_for_keeping_workers_is_what_epoch_starts_cost() -> None:
    case = replace(diagnosis(Cause("sample", "cpu", STARTS)), options=None, profile=True)
    parts = (Evidence("stage", "Stage", "decode"), Evidence("wait", "Data wait", "40%"))
    starts = Evidence("epoch", "Epoch boundary", "42% of epoch time (0.9 s per epoch)")
    verdict = replace(case.verdict, evidence_parts=(*parts, starts), evidence=tuple(map(str, (*parts, starts))))
    found = {fix.id: fix.evidence for fix in told(replace(case, verdict=verdict))}
    assert found.pop("persistent_workers") == (str(starts),)
    assert str(starts) not in {line for lines in found.values() for line in lines}
