"""From sums that were traced to what tells one cause from another."""

from __future__ import annotations

import pytest

from loaderbench.recorder.inside import reads_of, wait_parts
from loaderbench.recorder.stalls import StallSums
from loaderbench.records import Taking
from loaderbench.tracing.reading import ReadSums


def sums(pairs: list[tuple[float, float]]) -> ReadSums:
    sizes, times_s = zip(*pairs, strict=True)
    return ReadSums(
        len(pairs),
        sum(sizes),
        sum(times_s),
        sum(x * x for x in sizes),
        sum(x * y for x, y in zip(sizes, times_s, strict=True)),
    )


def test_time_that_grows_with_the_bytes_is_bandwidth() -> None:
    found = reads_of(sums([(size * 1e5, size * 1e-2) for size in range(1, 41)]))
    assert found is not None
    assert found.bytes_share == pytest.approx(1.0)


def test_time_that_is_the_same_for_every_size_is_latency() -> None:
    found = reads_of(sums([(size * 1e5, 1e-2) for size in range(1, 41)]))
    assert found is not None
    assert found.bytes_share == pytest.approx(0.0, abs=1e-6)


def test_both_are_told_apart_by_their_share() -> None:
    found = reads_of(sums([(size * 1e5, 1e-2 + size * 1e-2 / 20.5) for size in range(1, 41)]))
    assert found is not None
    assert found.bytes_share == pytest.approx(0.5)


def test_files_of_one_size_and_too_few_tell_no_slope() -> None:
    for pairs in ([(1e6, 1e-2)] * 50, [(1e6, 1e-2), (2e6, 2e-2)]):
        found = reads_of(sums(pairs))
        assert found is not None
        assert found.bytes_share is None
        assert "bytes_share" in found.not_measured
    assert reads_of(ReadSums()) is None


def test_the_sampler_s_time_is_taken_from_what_follows_the_making() -> None:
    stalls = StallSums(not_begun_s=1.0, making_s=2.0, order_s=3.0, after_s=4.0, batches=10)
    parts = wait_parts(stalls, Taking(wall_s=1.0, cpu_s=0.5, sampler_s=0.3))
    assert parts is not None
    assert (parts.transport_s, parts.main_process_s) == (pytest.approx(0.1), pytest.approx(0.3))
    assert wait_parts(StallSums(batches=10, amiss=9), None) is None
