"""How long ranks wait for one another: made-up clocks, the true waits known."""

from __future__ import annotations

import numpy as np
import pytest

from loaderbench.recorder.batches import APART, STEADY, WARMUP, table_of
from loaderbench.recorder.ranks import RankSteps, merge_ranks, waits_for_others
from loaderbench.recorder.steps import MOST_STEPS, RecentSteps, StepTimes

TRUE_AHEAD_S = {"a": 0.0, "b": 1234.5}
COMPUTE_S = 0.03


def training(waits_s: np.ndarray, hosts: list[str], *, together: bool = True) -> dict[int, RankSteps]:
    """Ranks whose batches take these seconds, of shape (ranks, steps); all leave a step together, or each its own."""
    ranks, steps = waits_s.shape
    times_s = np.empty((ranks, steps, 3))
    now_s = np.zeros(ranks)
    for step in range(steps):
        ready_s = now_s + waits_s[:, step]
        ends_s = np.full(ranks, ready_s.max() + COMPUTE_S) if together else ready_s + COMPUTE_S
        times_s[:, step] = np.stack([now_s, ready_s, ends_s], axis=1)
        now_s = ends_s
    keys = np.stack([np.zeros(steps), np.arange(steps)], axis=1).astype(np.int64)
    return {
        rank: RankSteps(host, StepTimes(keys, times_s[rank] + TRUE_AHEAD_S[host])) for rank, host in enumerate(hosts)
    }


@pytest.mark.parametrize("hosts", [["a", "a", "a"], ["a", "b", "b"], ["b", "b", "a"]])
def test_each_rank_waits_for_the_last_batch_on_any_host(hosts: list[str]) -> None:
    waits_s = np.repeat([[0.001], [0.07], [0.02]], 50, axis=1)
    shares, why_not = waits_for_others(training(waits_s, hosts))
    assert why_not == ""
    assert shares == pytest.approx({0: 0.069 / 0.1, 1: 0.0, 2: 0.05 / 0.1})


def test_with_waits_at_random_own_wait_and_that_for_others_are_the_same_in_all_ranks() -> None:
    waits_s = np.random.default_rng(3).exponential(0.02, (4, 400))
    shares, _ = waits_for_others(training(waits_s, ["a"] * 4))
    whole_s = (waits_s.max(axis=0) + COMPUTE_S).sum()
    together = [shares[rank] + waits_s[rank].sum() / whole_s for rank in range(4)]
    assert together == pytest.approx([waits_s.max(axis=0).sum() / whole_s] * 4)


def test_ranks_that_never_wait_for_one_another_have_no_such_wait() -> None:
    waits_s = np.repeat([[0.001], [0.07]], 50, axis=1)
    assert waits_for_others(training(waits_s, ["a", "a"], together=False)) == (
        {},
        "the ranks do not wait for one another in every step",
    )


def test_too_few_steps_in_common_say_nothing() -> None:
    assert waits_for_others(training(np.full((2, 9), 0.01), ["a", "a"]))[1].startswith("fewer than 10 steps")


def test_steps_are_numbered_by_epoch_over_all_chunks_of_rows() -> None:
    kinds = {0: APART, 1: WARMUP}
    rows = [
        (100.0 * epoch + n, 100.0 * epoch + n + 1, 100.0 * epoch + n + 0.5, 8, kinds.get(n, STEADY), epoch)
        for epoch in range(3)
        for n in range(40)
    ]
    kept = RecentSteps()
    for begin, end in ((0, 7), (7, 45), (45, 80), (80, 120)):
        kept.add(table_of(rows[begin:end]))
    found = kept.take()
    assert found.names == {(epoch, n) for epoch in range(3) for n in range(2, 40)}
    assert found.at({(1, 5), (2, 39)}).tolist() == [[105.0, 105.5, 106.0], [239.0, 239.5, 240.0]]


def test_the_last_steps_are_kept() -> None:
    kept = RecentSteps()
    rows = [(float(n), n + 1.0, n + 0.5, 8, STEADY, 0) for n in range(3 * MOST_STEPS)]
    for begin in range(0, len(rows), 1000):
        kept.add(table_of(rows[begin : begin + 1000]))
    assert kept.take().names == {(0, n) for n in range(2 * MOST_STEPS, 3 * MOST_STEPS)}


def test_there_is_nothing_to_merge_without_ranks() -> None:
    with pytest.raises(ValueError, match="no ranks"):
        merge_ranks([])
