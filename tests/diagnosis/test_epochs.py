"""Epoch costs are reported in seconds per epoch, and only when they are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loaderbench.diagnosis.epochs import costs_in_words, epoch_costs, without_epoch_starts
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


SHORT = trial(
    samples_per_s=50.0,
    samples=1_000,
    batches=100,
    steady_s=20.0,
    data_wait_share=0.55,  # 90 batches wait 0.1 s, and 10 boundaries take 0.2 s
    data_wait=WAIT,
    step=replace(WAIT, mean_s=0.09),
    epoch_ends=10,
    warmup_batches=12,
    epochs=Epochs(begun=12, boundary_s=0.2, boundary_max_s=0.3),
)
"""A trial of 20 s with epochs of ten batches, whose rate includes the boundaries."""

OF_RANK = ("samples_per_s", "samples", "batches", "steady_s", "data_wait", "step", "epoch_ends", "epochs")


def test_the_rate_of_a_trial_within_its_epochs_excludes_first_batches() -> None:
    found = without_epoch_starts(SHORT)
    assert found.steady_s == pytest.approx(90 * 0.19)
    assert (found.batches, found.samples, found.warmup_batches) == (90, 900, 10)
    assert found.data_wait_share == pytest.approx(0.1 / 0.19)
    assert found.samples_per_s == pytest.approx(900 / (90 * 0.19))
    assert found.epochs == SHORT.epochs


def test_in_time_slices_the_rate_of_a_trial_is_divided_as_its_steady_state_was() -> None:
    sliced, alone = (without_epoch_starts(replace(SHORT, samples_per_s=rate)) for rate in (100.0, 50.0))
    assert sliced.samples_per_s == pytest.approx(2 * (alone.samples_per_s or 0.0))
    assert (sliced.steady_s, sliced.data_wait_share) == (alone.steady_s, alone.data_wait_share)
    assert without_epoch_starts(replace(SHORT, samples_per_s=None)).samples_per_s is None


def test_where_each_batch_is_the_first_of_its_epoch_all_of_them_count() -> None:
    found = without_epoch_starts(replace(SHORT, data_wait=None, epoch_ends=100))
    assert (found.batches, found.samples, found.warmup_batches, found.data_wait_share) == (100, 1_000, 12, 0.0)
    assert found.steady_s == pytest.approx(100 * 0.09)
    assert found.samples_per_s == pytest.approx(1_000 / 9)


def test_each_rank_s_readings_exclude_its_own_first_batches() -> None:
    rank = RankReadings(rank=0, **{name: getattr(SHORT, name) for name in OF_RANK})
    both = replace(SHORT, batches=200, samples=2_000, samples_per_s=100.0, ranks=(rank, rank), slowest_rank=0)
    found = without_epoch_starts(both)
    assert (found.batches, found.samples, found.ranks[0].batches) == (180, 1_800, 90)
    assert found.steady_s == pytest.approx(found.ranks[0].steady_s)
    assert found.samples_per_s == pytest.approx(2 * (found.ranks[0].samples_per_s or 0.0))


@pytest.mark.parametrize("missing", ["epochs", "epoch_ends", "step", "batches", "steady_s"])
def test_readings_without_known_boundaries_stay(missing: str) -> None:
    profile = replace(SHORT, **{missing: None})
    assert without_epoch_starts(profile) == profile


def test_an_epoch_cost_of_a_trial_is_a_share_of_an_epoch_without_it() -> None:
    (found,) = epoch_costs([replace(SHORT, samples_per_epoch=100)], {})
    within_s = 100 / (900 / (90 * 0.19))
    assert (found.name, found.s_per_epoch) == ("boundary", pytest.approx(0.1))
    assert found.share == pytest.approx(0.1 / (0.1 + within_s))


def test_threads_are_started_once_and_not_in_each_epoch() -> None:
    assert epoch_costs([trial(time_to_first_batch_s=1.1)], {"loader": "threads"}) == ()
