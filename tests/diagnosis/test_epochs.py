"""Epoch costs are reported in seconds per epoch, and only when they are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loaderbench.diagnosis.epochs import costs_in_words, epoch_costs
from loaderbench.records import EpochCost, Epochs, RankReadings, Spread, Trial, WaitParts

WAIT = Spread(count=10, mean_s=0.1, p50_s=0.1, p95_s=0.1, p99_s=0.1, max_s=0.1)


def trial(**fields: object) -> Trial:
    known = {"samples_per_s": 100.0, "samples_per_epoch": 1000, "samples": 500, "batches": 50, "data_wait": WAIT}
    return Trial(role="sweep", id="a", config={}, round=1, status="completed", **{**known, **fields})  # type: ignore[arg-type]


def test_a_boundary_is_told_beyond_what_a_batch_waits_anyway() -> None:
    (found,) = epoch_costs([trial(epochs=Epochs(begun=3, boundary_s=2.1, boundary_max_s=2.2))], {})
    assert (found.name, found.s_per_epoch) == ("boundary", pytest.approx(2.0))
    assert found.share == pytest.approx(2 / 12)
    (said,) = costs_in_words([found])
    assert str(said) == ("Epoch boundary: 17% of epoch time (2 s per epoch)")


def test_a_sweep_tells_the_first_batch_where_each_epoch_starts_its_workers() -> None:
    (found,) = epoch_costs([trial(time_to_first_batch_s=1.1), trial(time_to_first_batch_s=3.1)], {})
    assert (found.name, found.s_per_epoch) == ("first_batch", pytest.approx(2.0))
    persistent = Trial(
        role="sweep",
        id="b",
        config={"persistent_workers": True},
        round=1,
        status="completed",
        time_to_first_batch_s=1.0,
    )
    assert epoch_costs([persistent], {}) == ()
    (found,) = epoch_costs([trial(time_to_first_batch_s=1.1, step=replace(WAIT, mean_s=0.4))], {})
    assert found.s_per_epoch == pytest.approx(0.6), "a batch arrives every 0.5 s: a wait and a step"
    assert epoch_costs([trial(time_to_first_batch_s=1.1)], {"persistent_workers": True}) == ()


def test_slow_samples_that_others_wait_for_are_told_for_a_whole_epoch() -> None:
    parts = WaitParts(batches=50, not_begun_s=0, making_s=0, order_s=0.02, transport_s=0, main_process_s=0)
    (found,) = epoch_costs([trial(wait_parts=parts)], {})
    assert (found.name, found.s_per_epoch, found.share) == ("stragglers", pytest.approx(2.0), pytest.approx(0.2))


def test_what_is_not_known_is_not_told() -> None:
    assert epoch_costs([Trial(role="sweep", id="a", config={}, round=1, status="failed")], {}) == ()
    (unknown,) = epoch_costs([trial(time_to_first_batch_s=1.1, samples_per_epoch=None)], {})
    assert unknown.share is None
    assert costs_in_words([unknown]) == ()


@pytest.mark.parametrize(("boundary_s", "clauses"), [(0.2002, 1), (0.1998, 0)])
def test_an_epoch_cost_is_reported_from_1_percent_on(boundary_s: float, clauses: int) -> None:
    """An epoch takes 9.9 s, and its boundary about 0.1 s more than the usual wait for a batch."""
    found = epoch_costs(
        [trial(samples_per_epoch=990, epochs=Epochs(begun=3, boundary_s=boundary_s, boundary_max_s=1))], {}
    )
    assert len(costs_in_words(found)) == clauses


def test_a_boundary_shorter_than_a_wait_loses_nothing() -> None:
    (found,) = epoch_costs([trial(epochs=Epochs(begun=3, boundary_s=0.01, boundary_max_s=0.01))], {})
    assert (found.s_per_epoch, found.share) == (0.0, 0.0)
    (found,) = epoch_costs([trial(time_to_first_batch_s=0.01)], {})
    assert found.s_per_epoch == 0.0


def test_without_known_waits_all_of_a_boundary_is_lost() -> None:
    (found,) = epoch_costs([trial(data_wait=None, epochs=Epochs(begun=3, boundary_s=2.0, boundary_max_s=2.0))], {})
    assert found.s_per_epoch == 2.0


def test_a_boundary_that_was_not_timed_leaves_the_first_batch() -> None:
    (found,) = epoch_costs(
        [trial(time_to_first_batch_s=1.1, epochs=Epochs(begun=3, boundary_s=None, boundary_max_s=None))], {}
    )
    assert found.name == "first_batch"


def test_slow_samples_lose_no_more_than_a_whole_epoch() -> None:
    parts = WaitParts(batches=50, not_begun_s=0, making_s=0, order_s=5.0, transport_s=0, main_process_s=0)
    (found,) = epoch_costs([trial(wait_parts=parts)], {})
    assert (found.s_per_epoch, found.share) == (500.0, 1.0)
    for missing in ("samples", "batches", "samples_per_epoch"):
        assert epoch_costs([trial(wait_parts=parts, **{missing: None})], {}) == ()
    (unknown,) = epoch_costs([trial(wait_parts=parts, samples_per_s=None)], {})
    assert unknown.share is None


def test_shares_are_of_the_epochs_whose_length_is_known() -> None:
    costs = [trial(time_to_first_batch_s=1.1, samples_per_epoch=None), trial(time_to_first_batch_s=3.1)]
    (found,) = epoch_costs(costs, {})
    assert (found.s_per_epoch, found.share) == (pytest.approx(2.0), pytest.approx(2 / 12))


def test_a_cost_of_exactly_a_hundredth_is_told() -> None:
    cost = EpochCost(name="boundary", s_per_epoch=1.0, share=0.01)
    assert len(costs_in_words([cost, replace(cost, share=0.0099), replace(cost, share=None)])) == 1


def test_ranks_lose_time_to_slow_samples_together() -> None:
    """Batches are those of all ranks, and the seconds those of one."""
    parts = WaitParts(batches=50, not_begun_s=0, making_s=0, order_s=0.02, transport_s=0, main_process_s=0)
    ranks = tuple(RankReadings(rank=rank) for rank in range(4))
    (found,) = epoch_costs([trial(wait_parts=parts, ranks=ranks, slowest_rank=0)], {})
    assert (found.s_per_epoch, found.share) == (pytest.approx(0.5), pytest.approx(0.05))
