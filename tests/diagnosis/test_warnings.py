"""Each reason to distrust a run is reported once, with its number."""

from dataclasses import replace

import pytest

from loaderbench.diagnosis.warnings import describe_noise, describe_overhead, find_warnings
from loaderbench.environment import describe_machine
from loaderbench.records import (
    Config,
    Configuration,
    Failure,
    Gpu,
    Interval,
    Kind,
    Noise,
    RankReadings,
    Scalar,
    Trial,
    WorkerStates,
)
from loaderbench.statistics.configurations import summarize

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
    return list(find_warnings(trials, summarize([CONFIG], trials), noise, loader or {}, kind, cpu_percent_before=busy))


def test_a_still_machine_gives_none() -> None:
    assert doubts(rounds(100, 101, 99), rounds(101, 99, 100)) == []


def test_each_kind_of_doubt_is_raised() -> None:
    failed = replace(rounds(1.0)[0], status="failed", samples_per_s=None, failure=Failure("bad_image", "", ""))
    drifted = [*rounds(100, 100, 100), replace(rounds(100)[0], reference_decode_after_s=0.002)]
    for found, word in (
        (doubts([*rounds(100, 100, 100), failed]), "bad_image (1)"),
        (doubts(rounds(100, 100)), "Only 2 rounds"),
        (doubts(rounds(100, 100, 100), busy=55.0), "55%"),
        (doubts(drifted), "varied by 2.0\u00d7"),
        (doubts(rounds(100, 101, 99), rounds(150, 151, 149)), "two runs of the same config differed by 50%"),
        (doubts(rounds(100, 200, 50)), "95% interval wider than"),
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
    warning = "ended early: the loader ran out of data before the steady state was long enough"
    assert doubts([replace(first, ended_early=True), *others]) == [f"1 trial {warning}"]
    assert doubts([replace(trial, ended_early=True) for trial in others])[0] == f"2 trials {warning}"


def test_epoch_ends_within_the_steady_state_are_told_with_their_trials() -> None:
    found = doubts(
        [replace(trial, epoch_ends=ends) for trial, ends in zip(rounds(100, 101, 99), (0, 2, 1), strict=True)]
    )
    assert found == ["2 trials: samples/s includes stalls between epochs"]


@pytest.mark.parametrize(
    ("of_driver", "found", "said"),
    [
        (0, 0, []),
        (1, 1, []),
        (1, 0, ["The driver has 1 GPU, but torch can use none: driver too old"]),
        (2, 0, ["The driver has 2 GPUs, but torch can use none: driver too old"]),
    ],
)
def test_a_gpu_that_torch_does_not_find_is_a_warning(of_driver: int, found: int, said: list[str]) -> None:
    gpus = tuple(Gpu(index, "", "H100", 1) for index in range(found))
    environment = describe_machine("fork", gpus, {"gpus": "driver too old"}, gpus_of_driver=of_driver)
    assert list(find_warnings([], [], Noise(None, None), {}, environment=environment)) == said


def test_a_config_that_ran_out_of_memory_when_a_fix_was_tried_is_named() -> None:
    done = rounds(100, 101, 99)
    full = Failure("shared_memory_full", "", "", limit_bytes=64 << 20, needed_bytes=74 << 20)
    failed = replace(done[0], id="v01-present", role="remedy", status="failed", samples_per_s=None, failure=full)
    rows, noise = summarize([CONFIG], done), describe_noise(done, [])
    said = "num_workers=0 ran out of memory in 1 of 4 trials: about 74 MiB needed, 64 MiB available"
    assert list(find_warnings(done, rows, noise, {}, others=[failed])) == [said]
    changed = replace(failed, config={**CONFIG, "decoder": "simplejpeg"})
    hung = replace(failed, failure=Failure("hang", "", ""))
    assert list(find_warnings(done, rows, noise, {}, others=[changed, hung])) == []


def test_a_batch_larger_than_the_dataset_is_told_once_swept_or_fixed() -> None:
    warnings = [
        "batch_size=512 exceeds an epoch (10 samples). Trials repeat samples; "
        "in training, drop_last=True would yield no batch"
    ]
    short = [replace(trial, samples_per_epoch=10) for trial in rounds(100, 101, 99)]
    swept = [replace(trial, config={"batch_size": 512}) for trial in short]
    noise = describe_noise(swept, [])
    assert list(find_warnings(swept, summarize([{"batch_size": 512}], swept), noise, {})) == warnings
    assert doubts(short, loader={"batch_size": 512}) == warnings
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
    assert any("Only 7 batches" in said for said in doubts([replace(trial, batches=7)], kind="profile"))


def test_a_profile_on_a_busy_machine_is_doubted() -> None:
    assert doubts(rounds(100), busy=55.0, kind="profile") == [
        "Other programs used 55% of the CPUs before the first trial"
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


def at_edge(word: str, *found: list[str]) -> list[bool]:
    return [any(word in doubt for doubt in doubts) for doubts in found]


def test_a_machine_s_speed_is_doubted_from_a_third_of_difference_on() -> None:
    def drifted(factor: float) -> list[str]:
        return doubts([replace(one, reference_decode_after_s=0.001 * factor) for one in rounds(100, 100, 100)])

    assert at_edge("varied by", drifted(1.29), drifted(1.31), drifted(1 / 1.31)) == [False, True, True]


def test_other_programs_are_doubted_from_a_fifth_of_the_cpus_on() -> None:
    quiet, busy, unknown = (doubts(rounds(100, 100, 100), busy=busy) for busy in (19.9, 20.0, None))
    assert at_edge("Other programs", quiet, busy, unknown) == [False, True, False]


def test_fewer_than_twenty_batches_of_a_loop_are_a_first_look() -> None:
    def of(*batches: int | None) -> list[str]:
        return doubts([replace(rounds(100)[0], batches=count) for count in batches], kind="profile")

    assert at_edge("batches were measured", of(20), of(19), of(None), of(0)) == [False, True, False, True]
    assert "Only 19 batches" in of(19, 5)[0]


def test_rounds_that_vary_by_more_than_a_quarter_are_counted() -> None:
    def around(spread: float) -> Configuration:
        config = summarize([CONFIG], rounds(100, 100, 100))[0]
        return replace(config, samples_per_s=Interval(100.0, 100.0 - spread, 100.0 + spread))

    rows = [around(25.0), around(25.1), around(60.0), replace(around(9.0), samples_per_s=None)]
    noise = describe_noise([], [])
    (said,) = [said for said in find_warnings([], rows, noise, {}) if "interval" in said]
    assert said == "95% interval wider than \N{PLUS-MINUS SIGN}25%: 2 of 4 configs"
    one_sided = replace(around(1.0), samples_per_s=Interval(100.0, None, 500.0))
    assert list(find_warnings([], [around(25.0), one_sided], noise, {})) == []


@pytest.mark.parametrize(("count", "warned"), [(0, False), (1, True), (2, True), (3, False)])
def test_one_or_two_completed_rounds_raise_a_warning(count: int, warned: bool) -> None:
    assert at_edge(f"Only {count} round", doubts(rounds(*[100.0] * count))) == [warned]
    failed = [replace(one, status="failed") for one in rounds(100, 100, 100)]
    assert at_edge("Only 1 round", doubts([*failed[1:], *rounds(100)])) == [True]


def test_failures_are_counted_by_kind_the_most_frequent_first() -> None:
    kinds = ("bad_image", "hang", "hang", "")
    trials = [
        replace(one, status="failed", failure=Failure(kind, "", "")) if kind else one
        for one, kind in zip(rounds(1, 1, 1, 1), kinds, strict=True)
    ]
    assert doubts(trials)[0] == "3 of 4 trials failed: hang (2), bad_image (1)"


def test_one_trial_with_epoch_ends_is_told_as_one() -> None:
    first, *others = rounds(100, 101, 99)
    (said,) = doubts([replace(first, epoch_ends=1), *others])
    assert "1 trial: " in said
    assert said == "1 trial: samples/s includes stalls between epochs"


def test_a_batch_as_large_as_the_dataset_repeats_nothing() -> None:
    trials = [replace(one, samples_per_epoch=10) for one in rounds(100, 100, 100)]
    assert doubts(trials, loader={"batch_size": 10}) == []
    assert len(doubts(trials, loader={"batch_size": 11})) == 1
    assert doubts(rounds(100, 100, 100), loader={"batch_size": 11}) == []
    assert doubts(trials, loader={"batch_size": "auto"}) == []


def test_noise_is_taken_over_all_that_was_timed_twins_included() -> None:
    trials = rounds(100, 100, 100, decode_s=0.002)
    twins = [replace(one, reference_decode_after_s=0.003) for one in rounds(100, 100, 100, decode_s=0.002)]
    assert describe_noise(trials, twins).reference_decode_spread == 1.5
    untimed = [replace(one, reference_decode_before_s=None, reference_decode_after_s=0.0) for one in trials]
    assert describe_noise(untimed, []).reference_decode_spread is None
    pair = describe_noise(rounds(100, 100, 100), rounds(150, 150, 150))
    assert pair.aa_difference is not None
    assert (pair.aa_difference.est, pair.not_measured) == (pytest.approx(1.5), {})


def test_what_measuring_cost_is_known_of_trials_that_saw_a_steady_state() -> None:
    (one,) = rounds(100)
    assert describe_overhead([one]) is None
    assert describe_overhead([replace(one, recorder_s_per_batch=1e-6)]) is None
    bare = describe_overhead([replace(one, recorder_s_per_batch=1e-6, steady_s=1.0)])
    assert bare is not None
    assert (bare.per_batch_s, bare.share_of_wall, bare.tracing_per_sample_s) == (1e-6, 0.0, None)


def test_the_largest_of_each_cost_is_told() -> None:
    (one,) = rounds(100)
    some = replace(one, recorder_s_per_batch=1e-6, steady_s=2.0, batches=10, samples=100, tracing_s_per_sample=1e-4)
    more = replace(some, recorder_s_per_batch=3e-6, tracing_s_per_sample=3e-4, monitor_cpu_share=0.5)
    found = describe_overhead([some, more, replace(more, recorder_s_per_batch=None, monitor_cpu_share=0.9)])
    assert found is not None
    assert (found.per_batch_s, found.tracing_per_sample_s, found.monitor_cpu_share) == (3e-6, 3e-4, 0.5)
    assert found.share_of_wall == pytest.approx((3e-5 + 3e-2) / 2)


def test_tracing_of_an_unknown_number_of_workers_counts_once() -> None:
    states = WorkerStates(on_cpu_share=1.0, run_queue_share=0.0, blocked_share=0.0, count=None)
    traced = replace(
        rounds(100)[0],
        config={"num_workers": 4},
        recorder_s_per_batch=0.0,
        samples=1000,
        steady_s=1.0,
        tracing_s_per_sample=1e-5,
    )
    for one in (traced, replace(traced, workers=states)):
        found = describe_overhead([one])
        assert found is not None
        assert found.share_of_wall == pytest.approx(0.01)


@pytest.mark.parametrize(("spread", "warned"), [(1.3, True), (1.299, False)])
def test_a_speed_change_of_1_3_and_more_raises_a_warning(spread: float, warned: bool) -> None:
    found = list(find_warnings([], [], Noise(spread, None), {}))
    assert at_edge("varied by 1.3", found) == [warned]


@pytest.mark.parametrize("est", [1.2, 0.8])
def test_a_pair_that_differs_from_itself_is_told_by_how_much_either_way(est: float) -> None:
    (said,) = find_warnings([], [], Noise(None, Interval(est, est - 0.01, est + 0.01)), {})
    assert said.endswith("by 20%")


def test_batches_larger_than_the_dataset_are_told_from_the_smallest_on() -> None:
    trials = [
        replace(one, config={"batch_size": batch}, samples_per_epoch=10)
        for one, batch in zip(rounds(1, 1, 1, 1, 1), (512, 64, 100, 33, 257), strict=True)
    ]
    noise = describe_noise([], [])
    sizes = [
        said.split()[0].removeprefix("batch_size=")
        for said in find_warnings(trials, [], noise, {})
        if said.startswith("batch_size")
    ]
    assert sizes == ["33", "64", "100", "257", "512"]


def test_a_recorder_that_took_no_time_that_could_be_told_cost_nothing() -> None:
    found = describe_overhead([replace(rounds(1)[0], recorder_s_per_batch=0.0, steady_s=1.0, batches=10)])
    assert found is not None
    assert (found.per_batch_s, found.share_of_wall) == (0.0, 0.0)


def test_tracing_of_samples_that_nobody_counted_costs_nothing() -> None:
    one = replace(rounds(1)[0], recorder_s_per_batch=0.0, steady_s=1.0, tracing_s_per_sample=1e-3, samples=None)
    found = describe_overhead([one])
    assert found is not None
    assert found.share_of_wall == 0.0


@pytest.mark.parametrize(
    ("wait", "later", "told"),
    [(0.5, 25.0, True), (0.5, 60.0, True), (0.5, 61.0, False), (0.5, 100.0, False), (0.01, 25.0, False)],
)
def test_a_baseline_that_lost_more_speed_than_the_best_while_fixes_were_tried_is_told(
    wait: float, later: float, told: bool
) -> None:
    """The best keeps 120 of its 100 samples/s, and the baseline, which waits, so many of 100."""
    fast: Config = {"num_workers": 2}
    baseline = [replace(trial, data_wait_share=wait) for trial in rounds(100, 100, 100)]
    best = [replace(trial, config=fast) for trial in rounds(100, 100, 100)]
    others = [replace(t, role="remedy") for t in (*rounds(later, later, later), *_with(fast, rounds(120, 120, 120)))]
    swept = [*baseline, *best]
    found = list(find_warnings(swept, summarize([CONFIG, fast], swept), describe_noise(swept, []), {}, others=others))
    said = [line for line in found if line.startswith("Uneven speed while trying fixes: ")]
    assert bool(said) == told
    if told:
        assert f"num_workers=0 at {later:.0f}% of its sweep rate, num_workers=2 at 120%" in said[0]
    assert not list(
        find_warnings(swept, summarize([CONFIG, fast], swept), describe_noise(swept, []), {}, others=others[:2])
    )


def _with(config: Config, trials: list[Trial]) -> list[Trial]:
    return [replace(trial, config=config) for trial in trials]


def test_the_short_window_before_time_slices_is_no_doubt_about_two_versions() -> None:
    trials = [replace(one, batches=4) for one in rounds(100, 101, 99)]
    said = "Only 4 batches were measured"
    assert any(one.startswith(said) for one in doubts(trials, kind="profile"))
    assert not any(one.startswith(said) for one in doubts(trials, kind="ab"))


def test_what_measuring_cost_is_a_share_of_the_time_of_one_rank() -> None:
    one = replace(rounds(100)[0], recorder_s_per_batch=1e-6, batches=100, steady_s=0.01)
    (alone,) = [describe_overhead([one])]
    rank = RankReadings(rank=0, recorder_s_per_batch=1e-6, batches=100, steady_s=0.01)
    four = replace(one, batches=400, ranks=(rank,) * 4, slowest_rank=0)
    together = describe_overhead([four])
    assert alone is not None
    assert together is not None
    assert together.share_of_wall == alone.share_of_wall == pytest.approx(0.01)
