"""Each reason to distrust a run is told once, with its number."""

from dataclasses import replace

import pytest

from loaderbench.diagnosis.warnings import describe_noise, describe_overhead, find_warnings
from loaderbench.records import Config, Failure, Kind, Scalar, Trial, WorkerStates
from loaderbench.statistics.configurations import summarise

CONFIG: Config = {"num_workers": 0}


def rounds(*rates: float, decode_s: float = 0.001) -> list[Trial]:
    return [
        Trial(
            role="sweep",
            id=f"r{number}",
            config=CONFIG,
            round=number,
            status="completed",
            samples_per_s=rate,
            data_wait_share=0.5,
            reference_decode_before_s=decode_s,
            reference_decode_after_s=decode_s,
        )
        for number, rate in enumerate(rates, 1)
    ]


def doubts(
    trials: list[Trial],
    twins: list[Trial] | None = None,
    busy: float | None = 0.0,
    loader: dict[str, Scalar] | None = None,
    kind: Kind = "sweep",
) -> list[str]:
    noise = describe_noise(trials, twins or [])
    return list(find_warnings(trials, summarise([CONFIG], trials), noise, loader or {}, kind, cpu_percent_before=busy))


def test_a_still_machine_gives_none() -> None:
    assert doubts(rounds(100, 101, 99), rounds(101, 99, 100)) == []


def test_each_kind_of_doubt_is_raised() -> None:
    failed = replace(rounds(1.0)[0], status="failed", samples_per_s=None, failure=Failure("bad_image", "", ""))
    drifted = [*rounds(100, 100, 100), replace(rounds(100)[0], reference_decode_after_s=0.002)]
    for found, word in (
        (doubts([*rounds(100, 100, 100), failed]), "bad_image (1)"),
        (doubts(rounds(100, 100)), "n = 2"),
        (doubts(rounds(100, 100, 100), busy=55.0), "55 %"),
        (doubts(drifted), "factor of 2.0"),
        (doubts(rounds(100, 101, 99), rounds(150, 151, 149)), "differed from itself by 50 %"),
        (doubts(rounds(100, 200, 50)), "vary by more than"),
    ):
        assert any(word in doubt for doubt in found), (word, found)


def test_the_a_a_pair_needs_both_halves() -> None:
    noise = describe_noise(rounds(100, 100, 100), [])
    assert noise.aa_difference is None
    assert "aa_difference" in noise.not_measured


def test_overhead_is_the_largest_of_all_trials() -> None:
    trials = [
        replace(trial, recorder_s_per_batch=1e-6, batches=10, steady_s=1.0, monitor_cpu_share=share)
        for trial, share in zip(rounds(1, 1), (0.001, 0.004), strict=True)
    ]
    found = describe_overhead(trials)
    assert found is not None
    assert (found.per_batch_s, found.monitor_cpu_share) == (1e-6, 0.004)
    assert describe_overhead([]) is None


def test_a_loader_that_ran_dry_is_told_with_its_count() -> None:
    first, *others = rounds(100, 101, 99)
    told = "ended early: the loader ran dry before the steady state was long enough"
    assert doubts([replace(first, ended_early=True), *others]) == [f"1 trial {told}"]
    assert doubts([replace(trial, ended_early=True) for trial in others])[0] == f"2 trials {told}"


def test_epoch_ends_within_the_steady_state_are_told_with_their_trials() -> None:
    found = doubts(
        [replace(trial, epoch_ends=ends) for trial, ends in zip(rounds(100, 101, 99), (0, 2, 1), strict=True)]
    )
    assert found == ["the steady state of 2 trials holds epoch ends, whose stalls are part of their rate"]


def test_a_batch_larger_than_the_dataset_is_told_once_swept_or_fixed() -> None:
    told = [
        "batch_size 512 is larger than the dataset (10 samples): "
        "with drop_last torch gives no batch; here samples repeat"
    ]
    short = [replace(trial, samples_per_epoch=10) for trial in rounds(100, 101, 99)]
    swept = [replace(trial, config={"batch_size": 512}) for trial in short]
    noise = describe_noise(swept, [])
    assert list(find_warnings(swept, summarise([{"batch_size": 512}], swept), noise, {})) == told
    assert doubts(short, loader={"batch_size": 512}) == told
    assert doubts(short, loader={"batch_size": 10}) == []


def test_the_share_of_the_wall_never_exceeds_the_whole() -> None:
    fast = [replace(trial, recorder_s_per_batch=1e-5, batches=200_000, steady_s=1.0) for trial in rounds(1)]
    found = describe_overhead(fast)
    assert found is not None
    assert found.share_of_wall == 1.0


def test_an_a_a_pair_with_a_rate_of_zero_has_no_difference() -> None:
    assert describe_noise(rounds(0.0, 0.0, 0.0), rounds(100, 100, 100)).aa_difference is None


def test_a_profile_is_not_doubted_for_what_it_is_by_nature() -> None:
    small = [replace(trial, samples_per_epoch=10) for trial in rounds(100)]
    failed = [replace(trial, status="failed", failure=Failure("no_batches", "", "")) for trial in small]
    assert doubts(small, loader={"batch_size": 32}, kind="profile") == []
    assert doubts(failed, kind="profile") == []
    assert len(doubts(small, loader={"batch_size": 32})) == 2


def test_a_profile_of_few_batches_is_doubted() -> None:
    (trial, *_) = rounds(100)
    assert any("only 7 batches" in said for said in doubts([replace(trial, batches=7)], kind="profile"))


def test_a_profile_on_a_busy_machine_is_doubted() -> None:
    assert doubts(rounds(100), busy=55.0, kind="profile") == [
        "other programs used 55 % of the CPUs before the first trial"
    ]


def test_tracing_counts_to_what_measuring_cost_once_for_each_worker() -> None:
    states = WorkerStates(on_cpu_share=1.0, run_queue_share=0.0, blocked_share=0.0, count=4)
    timed = replace(rounds(100)[0], recorder_s_per_batch=1e-3, batches=10, samples=1000, steady_s=1.0)
    traced = replace(timed, config={"num_workers": 4}, tracing_s_per_sample=1e-5, workers=states)
    for trial, share in ((timed, 0.01), (traced, 0.01 + 0.0025), (replace(traced, config=CONFIG), 0.01 + 0.01)):
        found = describe_overhead([trial])
        assert found is not None
        assert found.share_of_wall == pytest.approx(share)
        assert found.tracing_per_sample_s == trial.tracing_s_per_sample


def test_monitors_that_did_not_run_cost_an_unknown_share_and_not_none() -> None:
    found = describe_overhead([replace(rounds(1)[0], recorder_s_per_batch=1e-6, batches=10, steady_s=1.0)])
    assert found is not None
    assert found.monitor_cpu_share is None
