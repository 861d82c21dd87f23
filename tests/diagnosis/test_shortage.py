"""What did not fit on this machine, and how the verdict says so."""

from __future__ import annotations

import pytest

from loaderbench.diagnosis.shortage import find_shortage, more_workers_fail
from loaderbench.diagnosis.verdict import decide
from loaderbench.records import Config, Failure, Trial

MIB = 1 << 20


def failed(config: Config, kind: str = "shared_memory_full", needs: int | None = None, has: int | None = 64) -> Trial:
    sizes = (None if has is None else has * MIB, None if needs is None else needs * MIB)
    failure = Failure(kind, "", "", None, *sizes)
    return Trial(id="t", role="sweep", config=config, round=1, status="failed", failure=failure)


def test_the_smallest_that_failed_is_named_and_the_largest_need_kept() -> None:
    found = find_shortage([failed({"num_workers": 4}, needs=150), failed({"num_workers": 2}, needs=75)])
    assert found is not None
    assert (found.config, found.most_bytes) == ({"num_workers": 2}, 150 * MIB)
    assert str(found.evidence()) == "Shared memory: num_workers=2 failed; about 75 MiB needed, /dev/shm has 64 MiB"
    assert found.place == "/dev/shm (64 MiB)"


def test_a_memory_limit_says_its_size_alone() -> None:
    found = find_shortage([failed({"num_workers": 2}, "worker_killed", needs=75, has=900)])
    assert found is not None
    assert str(found.evidence()) == "Memory: num_workers=2 failed; at most 900 MiB can be used"


@pytest.mark.parametrize(
    "trial",
    [
        failed({"num_workers": 2}, "collate"),
        failed({"num_workers": 2}, "device_memory"),
        failed({"num_workers": 2}, has=None),
        failed({"num_workers": 1}),
        failed({"batch_size": 64}),
    ],
)
def test_only_more_workers_than_these_count_and_only_what_ran_out(trial: Trial) -> None:
    assert find_shortage([trial], {"num_workers": 1}) is None


@pytest.mark.parametrize(
    ("kind", "fails"),
    [
        ("shared_memory_full", True),
        ("too_many_files", True),
        ("too_many_processes", True),
        ("hang", False),
        ("device_memory", False),
    ],
)
def test_more_workers_fail_by_what_runs_out_alone(kind: str, fails: bool) -> None:
    trial = failed({"num_workers": 2}, kind, has=None)
    assert more_workers_fail([trial], {"num_workers": 0}) is fails
    assert not more_workers_fail([trial], {"num_workers": 2})


def test_where_nothing_fits_the_verdict_says_in_what() -> None:
    trials = [failed({"num_workers": 0}, "fork_server_killed", has=500)]
    found = decide(None, "emulated", 1000.0, 0, trials=trials, shortage=find_shortage(trials))
    assert found.headline == "nothing was measured: every trial failed; memory (500 MiB) is too small"
    assert found.evidence[-1] == "Memory: num_workers=0 failed; at most 500 MiB can be used"


def test_larger_batches_that_do_not_fit_say_nothing_of_more_workers() -> None:
    subject: Config = {"batch_size": 32, "num_workers": 4}
    large = failed({"batch_size": 512, "num_workers": 8}, needs=900)
    more: Config = {"batch_size": 32, "num_workers": 8}
    ran = Trial(id="t", role="sweep", config=more, round=1, status="completed", samples_per_s=1.0)
    assert find_shortage([large], subject) is not None
    assert more_workers_fail([large], subject)
    assert find_shortage([large, ran], subject) is None
    assert not more_workers_fail([large, ran], subject)
