"""From sums that were traced to what tells one cause from another."""

from __future__ import annotations

import random

import pytest

from loaderbench.diagnosis.thresholds import BYTES_SEEN
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
        sum(y * y for y in times_s),
    )


def bytes_share(seed: int, grows_by: float, reads: int = 400) -> float | None:
    """The share found for files of many sizes and waits of exponential duration, which may also grow with the bytes."""
    chance = random.Random(seed)
    sizes = [chance.gauss(1.0, 0.3) for _ in range(reads)]
    found = reads_of(sums([(1e5 * size, chance.expovariate(1) + grows_by * size) for size in sizes]))
    assert found is not None
    assert (found.bytes_share is None) == ("bytes_share" in found.not_measured)
    return found.bytes_share


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


def test_waits_of_random_duration_seldom_seem_to_grow_with_the_bytes() -> None:
    found = [bytes_share(seed, 0.0) for seed in range(200)]
    assert sum(share is not None and share >= BYTES_SEEN for share in found) <= 10, "2.5% are expected"
    assert sum(share is None for share in found) >= 100
    known = [bytes_share(seed, 0.0, reads=40_000) for seed in range(20)]
    assert sum(share is not None and share < BYTES_SEEN for share in known) >= 19, "many reads show that they do not"


def test_waits_that_grow_with_the_bytes_are_seen_next_to_random_durations() -> None:
    found = [bytes_share(seed, 9.0) for seed in range(50)]
    assert all(share is not None and share > 0.5 for share in found)


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
