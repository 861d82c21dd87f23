"""Each reason to distrust a run is told once, with its number."""

from dataclasses import replace

from loaderbench.analysis.configurations import summarise
from loaderbench.analysis.doubts import describe_noise, describe_overhead, find_doubts
from loaderbench.records import Config, Failure, Trial

CONFIG: Config = {"num_workers": 0}


def rounds(*rates: float, decode_s: float = 0.001) -> list[Trial]:
    return [
        Trial(
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


def doubts(trials: list[Trial], twins: list[Trial] | None = None, busy: float | None = 0.0) -> list[str]:
    noise = describe_noise(trials, twins or [], busy)
    return list(find_doubts(trials, summarise([CONFIG], trials), noise))


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
    noise = describe_noise(rounds(100, 100, 100), [], None)
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
