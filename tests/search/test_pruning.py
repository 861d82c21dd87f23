"""What would end as another did is not tried: larger batches after an out-of-memory, and what hung."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loaderbench.diagnosis.failures import OUT_OF_MEMORY
from loaderbench.records import Config, Failure, Trial
from loaderbench.search.grid import why_pruned


def failed(kind: str, **config: int) -> Trial:
    return Trial(role="sweep", id="t", config=dict(config), round=1, status="failed", failure=Failure(kind, "", ""))


@pytest.mark.parametrize("kind", sorted(OUT_OF_MEMORY))
def test_a_larger_batch_is_not_tried_where_a_smaller_one_ran_out_of_memory(kind: str) -> None:
    done = [failed(kind, batch_size=64, num_workers=4)]
    assert "this needs at least as much" in str(why_pruned({"batch_size": 128, "num_workers": 4}, done))
    others: tuple[Config, ...] = (
        {"batch_size": 32, "num_workers": 4},
        {"batch_size": 128, "num_workers": 2},
        {"num_workers": 4},
        {"batch_size": None, "num_workers": 4},
    )
    for other in others:
        assert why_pruned(other, done) is None


@pytest.mark.parametrize("kind", sorted(OUT_OF_MEMORY))
def test_more_workers_or_batches_ahead_need_more_memory_but_not_on_a_device(kind: str) -> None:
    done = [failed(kind, batch_size=64, num_workers=2, prefetch_factor=2)]
    pruned = kind != "device_memory"
    for more in ({"num_workers": 4}, {"prefetch_factor": 4}, {"num_workers": 3, "prefetch_factor": 3}):
        config: Config = {"batch_size": 64, "num_workers": 2, "prefetch_factor": 2, **more}
        assert bool(why_pruned(config, done)) is pruned
    for fits in (
        {"num_workers": 4, "prefetch_factor": 1},
        {"num_workers": 0},
        {"num_workers": 4, "normalize": "device"},
    ):
        assert why_pruned({"batch_size": 64, "num_workers": 2, "prefetch_factor": 2, **fits}, done) is None


def test_what_workers_set_up_makes_no_batch_smaller() -> None:
    done = [failed("shared_memory_full", batch_size=64, num_workers=2)]
    assert why_pruned({"batch_size": 64, "num_workers": 2, "keep_memory": True}, done)
    assert why_pruned({"batch_size": 32, "num_workers": 2, "keep_memory": True}, done) is None


def test_after_too_many_files_batches_may_be_shared_another_way() -> None:
    failed_so = failed("too_many_files", batch_size=64, num_workers=2)
    more: Config = {"batch_size": 64, "num_workers": 3}
    assert why_pruned(failed_so.config, [failed_so])
    assert why_pruned(more, [failed_so])
    assert why_pruned({"batch_size": 64, "num_workers": 0}, [failed_so]) is None
    assert why_pruned({**more, "worker_sharing": "file_system"}, [failed_so]) is None
    again = replace(failed_so, config={**failed_so.config, "worker_sharing": "file_system"})
    assert why_pruned({**more, "worker_sharing": "file_system"}, [failed_so, again])


def test_what_somebody_else_killed_prunes_nothing() -> None:
    failure = Failure("worker_killed", "", "", by_oom_killer=False)
    trial = Trial(role="sweep", id="t", config={"batch_size": 64}, round=1, status="failed", failure=failure)
    assert why_pruned({"batch_size": 64}, [trial]) is None
    assert why_pruned({"batch_size": 128}, [trial]) is None


def test_what_hung_is_not_waited_for_again() -> None:
    done = [failed("hang", batch_size=64)]
    assert "failed in round" in str(why_pruned({"batch_size": 64}, done))
    assert why_pruned({"batch_size": 128}, done) is None


@pytest.mark.parametrize("config", [{"batch_size": 64}, {"batch_size": 128}])
def test_other_failures_prune_nothing(config: Config) -> None:
    assert why_pruned(config, [failed("bad_image", batch_size=64), failed("error", batch_size=64)]) is None


def test_what_was_pruned_prunes_nothing_itself() -> None:
    assert why_pruned({"batch_size": 256}, [failed("pruned", batch_size=128)]) is None


def test_where_the_failed_one_names_no_batch_no_batch_is_larger() -> None:
    assert why_pruned({"batch_size": 128}, [failed("shared_memory_full")]) is None
