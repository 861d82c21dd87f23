"""A trial that ran out of memory is told beside what had room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loaderbench.diagnosis.failures import OUT_OF_MEMORY, what_fits
from loaderbench.records import Failure, Trial


def trial(workers: int, batch: int, kind: str | None = None) -> Trial:
    failure = Failure(kind, "", "") if kind else None
    status = "failed" if kind else "completed"
    return Trial(
        role="sweep",
        id="t",
        config={"num_workers": workers, "batch_size": batch},
        round=1,
        status=status,
        failure=failure,
    )


@pytest.mark.parametrize("kind", sorted(OUT_OF_MEMORY))
def test_the_largest_of_each_that_was_completed_is_told(kind: str) -> None:
    done = [trial(1, 64), trial(4, 64), trial(4, 256), trial(8, 32), trial(8, 128)]
    told = what_fits(trial(8, 256, kind), [*done, trial(2, 256)])
    assert told == "Fits in memory with num_workers=4 or with batch_size=128, all else unchanged"


def test_what_failed_in_another_round_or_is_larger_does_not_fit() -> None:
    failed = trial(4, 64, "worker_killed")
    assert what_fits(failed, [failed, trial(8, 64), trial(2, 64), trial(2, 64, "worker_killed")]) == ""


def test_what_somebody_else_killed_wanted_no_room() -> None:
    failed = trial(4, 64, "worker_killed")
    assert failed.failure is not None
    by_another = replace(failed, failure=replace(failed.failure, by_oom_killer=False))
    assert what_fits(failed, [trial(2, 64)])
    assert what_fits(by_another, [trial(2, 64)]) == ""


def test_other_failures_want_no_room() -> None:
    assert what_fits(trial(4, 64, "bad_image"), [trial(1, 64)]) == ""
    assert what_fits(trial(4, 64), [trial(1, 64)]) == ""
