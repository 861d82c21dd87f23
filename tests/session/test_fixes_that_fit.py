"""A fix that does not fit in memory is tried with less in flight, the cheapest change first, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from loaderbench.records import Candidate, Config, Failure, Trial
from loaderbench.session.verifying import Fitting
from loaderbench.suite import Suite

MIB = 1 << 20
SAMPLE = 3 * 224 * 224 * 4
NOW: Config = {"batch_size": 32, "num_workers": 0}
MORE = Candidate("main_process_loading", {"num_workers": 2}, 1.5, 0)


def suite(**dataset: Any) -> Suite:
    return Suite.model_validate({"dataset": {"root": "x", **dataset}})


def failed(config: Config, kind: str = "shared_memory_full") -> Trial:
    return Trial(id="t", role="sweep", config=config, round=1, status="failed", failure=Failure(kind, "", ""))


def change(done: list[Trial], total_mib: float | None, of: Suite | None = None, now: Config = NOW) -> Config | None:
    total = None if total_mib is None else int(total_mib * MIB)
    found = Fitting(of or suite(), done, total).fitted(MORE, now)
    return None if found is None else found.change


def test_what_nothing_speaks_against_is_tried_as_it_is() -> None:
    assert change([], 1) == {"num_workers": 2}
    assert change([failed({"batch_size": 128, "num_workers": 2})], 64) == {"num_workers": 2}


@pytest.mark.parametrize(
    ("total_mib", "further"),
    [
        (64, {"normalize": "device"}),
        (20, {"normalize": "device", "prefetch_factor": 1}),
        (10, {"normalize": "device", "prefetch_factor": 1, "batch_size": 16}),
        (4, {"normalize": "device", "prefetch_factor": 1, "batch_size": 8}),
        (3, None),
        (None, {"normalize": "device"}),
    ],
)
def test_the_least_is_changed_that_fits_in_shared_memory(total_mib: float | None, further: Config | None) -> None:
    expected = None if further is None else {"num_workers": 2, **further}
    assert change([failed({**NOW, "num_workers": 2})], total_mib) == expected


def test_samples_that_are_small_already_or_of_unknown_size_are_left_as_they_are() -> None:
    shallow = {"num_workers": 2, "prefetch_factor": 1}
    done = [failed({**NOW, "num_workers": 2})]
    assert change(done, 64, suite(normalize="device")) == shallow
    unknown = Suite.model_validate({"dataset": {"kind": "target", "target": "a:b"}})
    assert change(done, 1, unknown) == shallow


def test_what_needs_as_many_bytes_as_what_failed_is_not_tried_either() -> None:
    """A larger batch of fewer workers failed: as many bytes."""
    done = [failed({"batch_size": 64, "num_workers": 1})]
    assert change(done, 1024) == {"num_workers": 2, "normalize": "device"}


def test_after_too_many_open_files_batches_are_shared_by_files() -> None:
    shared = {"num_workers": 2, "worker_sharing": "file_system"}
    assert change([failed({**NOW, "num_workers": 2}, "too_many_files")], 1024) == shared


def test_after_a_kill_for_memory_something_smaller_is_tried() -> None:
    assert change([failed({**NOW, "num_workers": 2}, "worker_killed")], None) == {
        "num_workers": 2,
        "normalize": "device",
    }
